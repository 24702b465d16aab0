-- put_back: returns held jobs that were never started to the front of the queue, unchanged and in order.
-- Promise: only an entry that is still held under its number moves.
-- KEYS   1 running     hash; take number -> entry
--        2 hot         list; jobs waiting for any worker
-- ARGV   1 ...numbers  take numbers, the latest first
-- Reply  how many moved
-- Crash  before: still held. After: waiting at the front.
local running, hot, numbers = KEYS[1], KEYS[2], ARGV

local moved = 0
for _, number in ipairs(numbers) do
  local entry = redis.call('HGET', running, number)
  if entry then
    redis.call('HDEL', running, number)
    redis.call('LPUSH', hot, entry)
    moved = moved + 1
  end
end
return moved
