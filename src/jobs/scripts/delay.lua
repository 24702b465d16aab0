-- delay: held jobs go to sleep until they are due, with new counters.
-- Promise: only an entry that is still held under its number is replaced.
-- KEYS   1 running   hash; take number -> entry
--        2 delayed   zset; jobs waiting for their time
--        3 queued    hash; digest -> time its waiting entry was pushed
-- ARGV   1 ...items  take number, new job JSON, due time, digest or an empty text, and the time the entry was pushed; five per
--                   item
-- Reply  how many moved
-- Crash  before: still held. After: asleep.
local running, delayed, queued = KEYS[1], KEYS[2], KEYS[3]
local items = ARGV
-- include: own_marker.lua

local moved = 0
for i = 1, #items, 5 do
  if redis.call('HDEL', running, items[i]) == 1 then
    redis.call('ZADD', delayed, items[i + 2], items[i + 1])
    if items[i + 3] ~= '' and own_marker(queued, items[i + 3], items[i + 4]) then
      redis.call('HDEL', queued, items[i + 3])
    end
    moved = moved + 1
  end
end
return moved
