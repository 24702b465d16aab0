-- reschedule: moves members of the purgatory back into the schedule, each with a new due time.
-- Promise: a member is in exactly one of the two sets; one that is not in the purgatory is left as it is.
-- KEYS   1 schedule   zset scored by due time
--        2 purgatory  zset; what the one worker holds now
--        3 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 ...pairs   score and member in turn
-- Reply  how many were moved; -10 fenced
-- Crash  before: the next run repeats them. After: they wait again; repeating answers 0.
local schedule, purgatory, lock, lock_id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local given = { unpack(ARGV, 2) }

-- include: ../../lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local moved = 0
for at = 1, #given, 2 do
  if redis.call('ZREM', purgatory, given[at + 1]) == 1 then
    redis.call('ZADD', schedule, given[at], given[at + 1])
    moved = moved + 1
  end
end
return moved
