-- refile: moves held jobs to the queue of their category, for a worker that accepts it.
-- Promise: only an entry that is still held under its number moves.
-- KEYS   1 running      hash; take number -> entry
--        2 category     list; jobs waiting for a worker of that category
-- ARGV   1 ...numbers   take numbers
-- Reply  how many moved
-- Crash  before: still held. After: waiting in the category's queue.
local running, category = KEYS[1], KEYS[2]

local moved = 0
for i = 1, #ARGV do
  local entry = redis.call('HGET', running, ARGV[i])
  if entry then
    redis.call('HDEL', running, ARGV[i])
    redis.call('RPUSH', category, entry)
    moved = moved + 1
  end
end
return moved
