-- unreserve: returns mails that were taken and not sent to the heads of their lanes.
-- Promise: a mail is always in exactly one of the lists; each lane is as if these had never been taken; what is no longer
--          in the purgatory was settled before and goes nowhere.
-- KEYS   1 to_send    list; consumers take from the left
--        2 urgent     list; the lane that goes first
--        3 purgatory  list; the mails that the send job holds
--        4 lock       the send job's lock
-- ARGV   1 lock_id    the id that the job believes to hold
--        2 ordinary   integer; how many of the mails belong to to_send
--        3 ...items   the mails of to_send in order, then those of urgent in order
-- Reply  how many were returned; -10 fenced
-- Crash  before: the next run finds them in the purgatory. After: they wait again.
local to_send, urgent, purgatory, lock = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lock_id, ordinary, items = ARGV[1], tonumber(ARGV[2]), ARGV

-- include: ../../../mechanisms/lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local returned = 0
for at = #items, 3, -1 do
  if redis.call('LREM', purgatory, 1, items[at]) == 1 then
    redis.call('LPUSH', at - 2 <= ordinary and to_send or urgent, items[at])
    returned = returned + 1
  end
end
return returned
