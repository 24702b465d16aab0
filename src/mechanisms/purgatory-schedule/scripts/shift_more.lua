-- shift_more: a later shift of the same run: fills the purgatory up with due members.
-- Promise: a member is in exactly one of the two sets with its due time; the purgatory never exceeds its limit.
-- KEYS   1 schedule   zset scored by due time
--        2 purgatory  zset; what the one worker holds now
--        3 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 max_items  integer >= 1; how many to move at most
--        3 max_score  what is due at this time or earlier is moved, the earliest first
--        4 limit      integer >= 1; how many the purgatory may hold
-- Reply  { size, moved }; size = -10: fenced
-- Crash  before: nothing happened. After: the next run's shift finds all of the purgatory.
local schedule, purgatory, lock, lock_id, max_items, max_score, limit =
  KEYS[1], KEYS[2], KEYS[3], ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

-- include: ../../lock/scripts/fence.lua
-- include: move_due.lua

if not holds_lock(lock, lock_id) then
  return { -10, 0 }
end
local size = redis.call('ZCARD', purgatory)
local room = math.min(max_items, limit - size)
if room <= 0 then
  return { size, 0 }
end
move_due(schedule, purgatory, room, max_score)
local now_held = redis.call('ZCARD', purgatory)
return { now_held, now_held - size }
