-- ack_with: removes the leftmost items and, in the same step, does what their completion causes.
-- Promise: either all of it happens or nothing; the types of all keys are checked before the first change.
-- KEYS   1 purgatory   list; what the one worker holds now
--        2 lock        the worker's lock
--        3 ...targets  the keys that the effects name by position
-- ARGV   1 lock_id     the id that the worker believes to hold
--        2 count       integer >= 0
--        3 ...effects  in turn: name, position of its target from 1, number of values, the values. Names: rpush and
--                      lpush (items), sadd (members), hincrby (field and amount in turn), incrby (amount),
--                      lower (a date: sets the string if it is absent or higher)
-- Reply  how many remain; -10 fenced
-- Crash  before: the next run repeats these items with their effects. After: both are done.
local purgatory, lock, lock_id, count = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])
local targets, before_targets, effects, first_effect = KEYS, 2, ARGV, 3

-- include: ../../lock/scripts/fence.lua
-- include: effects.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local wrong = wrongly_typed(targets, before_targets, effects, first_effect)
if wrong then
  return redis.error_reply('WRONGTYPE ' .. wrong .. ' has another type than the effect on it needs')
end
if count > 0 then
  redis.call('LTRIM', purgatory, count, -1)
end
apply_effects(targets, before_targets, effects, first_effect)
return redis.call('LLEN', purgatory)
