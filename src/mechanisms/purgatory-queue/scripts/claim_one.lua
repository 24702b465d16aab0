-- claim_one: makes the purgatory hold an item: the head it has, or one from the queue.
-- Promise: an item is always in exactly one of the two lists; order is kept.
-- KEYS   1 queue      list; producers append on the right
--        2 purgatory  list; what the one worker holds now
--        3 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
-- Reply  1 the purgatory's head is the item; 0 both are empty; -10 fenced
-- Crash  before: nothing happened. After: the next claim finds the same head.
local queue, purgatory, lock, lock_id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

-- include: ../../lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
if redis.call('EXISTS', purgatory) == 1 or redis.call('LMOVE', queue, purgatory, 'LEFT', 'RIGHT') then
  return 1
end
return 0
