-- claim: the first claim of a run: moves a batch from a queue into its purgatory, unless a dead run left one there.
-- Promise: an item is always in exactly one of the keys; order is kept; leftovers are never mixed with new items.
-- KEYS   1 queue      list; producers append on the right
--        2 purgatory  list; what the one worker holds now
--        3 lock       the worker's lock
--        4 ...retrying  zset scored by due time, where a queue has one: what is due joins the queue's end first
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 max_items  integer >= 1
--        3 now        unix seconds
-- Reply  { size, recovered }; recovered = 1: an earlier run died, nothing was moved, size counts what it left;
--        size = -10: fenced
-- Crash  before: nothing happened. After: the next run's claim answers recovered = 1 with the same items.
local queue, purgatory, lock, retrying = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local lock_id, max_items, now = ARGV[1], tonumber(ARGV[2]), ARGV[3]

-- include: ../../lock/scripts/fence.lua
-- include: rejoin_due.lua

if not holds_lock(lock, lock_id) then
  return { -10, 0 }
end
local left = redis.call('LLEN', purgatory)
if left > 0 then
  return { left, 1 }
end
if retrying then
  rejoin_due(retrying, queue, now, max_items)
end
local items = redis.call('LPOP', queue, max_items)
if not items then
  return { 0, 0 }
end
redis.call('RPUSH', purgatory, unpack(items))
return { #items, 0 }
