-- claim_more: a later claim of the same run: fills the purgatory up with items from the queue.
-- Promise: an item is always in exactly one of the keys; order is kept; the purgatory never exceeds its limit.
-- KEYS   1 queue      list; producers append on the right
--        2 purgatory  list; what the one worker holds now
--        3 lock       the worker's lock
--        4 ...retrying  zset scored by due time, where a queue has one: what is due joins the queue's end first
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 max_items  integer >= 1; how many to move at most
--        3 now        unix seconds
--        4 limit      integer >= 1; how many the purgatory may hold
-- Reply  { size, moved }; size = -10: fenced
-- Crash  before: nothing happened. After: the next run's claim finds all of the purgatory.
local queue, purgatory, lock, retrying = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lock_id, max_items, now, limit = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4])

-- include: ../../lock/scripts/fence.lua
-- include: rejoin_due.lua

if not holds_lock(lock, lock_id) then
  return { -10, 0 }
end
local size = redis.call('LLEN', purgatory)
local room = math.min(max_items, limit - size)
if room <= 0 then
  return { size, 0 }
end
if retrying then
  rejoin_due(retrying, queue, now, room)
end
local items = redis.call('LPOP', queue, room)
if not items then
  return { size, 0 }
end
redis.call('RPUSH', purgatory, unpack(items))
return { size + #items, #items }
