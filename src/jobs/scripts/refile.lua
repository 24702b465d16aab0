-- refile: moves held jobs to the queue of their category, for a worker that accepts it.
-- Promise: only an entry that is still held under its number moves.
-- KEYS   1 running      hash; take number -> entry
--        2 category     list; jobs waiting for a worker of that category
-- ARGV   1 ...numbers   take numbers
-- Reply  how many moved
-- Crash  before: still held. After: waiting in the category's queue.
local running, category, numbers = KEYS[1], KEYS[2], ARGV

local moved = 0
for _, number in ipairs(numbers) do
  local entry = redis.call('HGET', running, number)
  if entry then
    redis.call('HDEL', running, number)
    redis.call('RPUSH', category, entry)
    moved = moved + 1
  end
end
return moved
