-- shift: the first shift of a run: moves due members into the purgatory, unless a dead run left some there.
-- Promise: a member is in exactly one of the two sets with its due time; leftovers are never mixed with new members.
-- KEYS   1 schedule   zset scored by due time
--        2 purgatory  zset; what the one worker holds now
--        3 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 max_items  integer >= 1
--        3 max_score  what is due at this time or earlier is moved, the earliest first
-- Reply  { size, recovered }; recovered = 1: an earlier run died, nothing was moved; size = -10: fenced
-- Crash  before: nothing happened. After: the next run's shift answers recovered = 1 with the same members.
local schedule, purgatory, lock, lock_id, max_items, max_score =
  KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2]), ARGV[3]

-- include: ../../lock/scripts/fence.lua
-- include: move_due.lua

if not holds_lock(lock, lock_id) then
  return { -10, 0 }
end
local left = redis.call('ZCARD', purgatory)
if left > 0 then
  return { left, 1 }
end
return { move_due(schedule, purgatory, max_items, max_score), 0 }
