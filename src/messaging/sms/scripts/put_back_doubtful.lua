-- put_back_doubtful: returns texts that a dead run left to the head of their queue, each with the note that it may have been sent.
-- Promise: a text is always in exactly one of the two lists; the order is kept; no text leaves the purgatory without its note.
-- KEYS   1 to_send    list; the sender takes from the left
--        2 purgatory  list; what the sender holds now
--        3 lock       the sender's lock
-- ARGV   1 lock_id    the id that the sender believes to hold
--        2 ...items   in turn: the text byte for byte as it lies in the purgatory, the text with its note
-- Reply  how many were returned; -10 fenced
-- Crash  before: the next run finds them in the purgatory. After: they wait, and are looked up before they are sent.
local to_send, purgatory, lock, lock_id, items = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV

-- include: ../../../mechanisms/lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local returned = 0
for at = #items - 1, 2, -2 do
  if redis.call('LREM', purgatory, -1, items[at]) == 1 then
    redis.call('LPUSH', to_send, items[at + 1])
    returned = returned + 1
  end
end
return returned
