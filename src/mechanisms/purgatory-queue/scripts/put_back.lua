-- put_back: returns the whole purgatory to the head of its queue, because none of it could be begun.
-- Promise: an item is always in exactly one of the two lists; the order is as if it had never been claimed.
-- KEYS   1 queue      list; consumers take from the left
--        2 purgatory  list; what the one worker holds now
--        3 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
-- Reply  how many were returned; -10 fenced
-- Crash  before: the next run recovers the purgatory. After: the items wait again.
local queue, purgatory, lock, lock_id = KEYS[1], KEYS[2], KEYS[3], ARGV[1]

-- include: ../../lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local size = redis.call('LLEN', purgatory)
for _ = 1, size do
  redis.call('LMOVE', purgatory, queue, 'RIGHT', 'LEFT')
end
return size
