-- ack: removes the leftmost items of a list, because they are done.
-- Promise: only the holder of the lock counts items off; a worker that lost it removes nothing.
-- KEYS   1 purgatory  list; what the one worker holds now
--        2 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 count      integer >= 0
-- Reply  how many remain; -10 fenced
-- Crash  before: the next run repeats these items. After: they are done.
local purgatory, lock, lock_id, count = KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2])

-- include: ../../lock/scripts/fence.lua

if not holds_lock(lock, lock_id) then
  return -10
end
if count > 0 then
  redis.call('LTRIM', purgatory, count, -1)
end
return redis.call('LLEN', purgatory)
