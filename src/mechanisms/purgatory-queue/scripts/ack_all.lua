-- ack_all: empties the purgatory, because the whole batch is done.
-- Promise: only the holder of the lock empties it.
-- KEYS   1 purgatory  list; what the one worker holds now
--        2 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
-- Reply  how many were removed; -10 fenced
-- Crash  before: the next run repeats the batch. After: it is done; repeating answers 0.
local purgatory, lock, lock_id = KEYS[1], KEYS[2], ARGV[1]

-- include: ../../lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
local size = redis.call('LLEN', purgatory)
redis.call('DEL', purgatory)
return size
