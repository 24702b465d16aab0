-- set_aside: puts mails of lists aside that were taken while lists are paused.
-- Promise: a mail is always in exactly one of the lists; order is kept; what is no longer in the purgatory was settled
--          before and goes nowhere.
-- KEYS   1 purgatory  list; the mails that the send job holds
--        2 paused     list; mails of lists that wait until lists go on
--        3 lock       the send job's lock
-- ARGV   1 lock_id    the id that the job believes to hold
--        2 ...items   the mails, in order
-- Reply  how many were set aside; -10 fenced
-- Crash  before: the next run finds them in the purgatory. After: they are set aside.
local purgatory, paused, lock = KEYS[1], KEYS[2], KEYS[3]
local lock_id, items = ARGV[1], ARGV

-- include: ../../../mechanisms/lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local aside = 0
for at = 2, #items do
  if redis.call('LREM', purgatory, 1, items[at]) == 1 then
    redis.call('RPUSH', paused, items[at])
    aside = aside + 1
  end
end
return aside
