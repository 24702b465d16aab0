-- fail: held jobs that will not run again by themselves are kept for an administrator.
-- Promise: only an entry that is still held under its number fails; nothing is dropped.
-- KEYS   1 running   hash; take number -> entry
--        2 failed    list; failed jobs, newest on the left
--        3 queued    hash; digest -> time its waiting entry was pushed
-- ARGV   1 ...items  take number, failure JSON, digest or an empty text, and the time the entry was pushed; four per item
-- Reply  how many failed
-- Crash  before: still held. After: in the list of failures.
local running, failed, queued = KEYS[1], KEYS[2], KEYS[3]
local items = ARGV
-- include: own_marker.lua

local moved = 0
for i = 1, #items, 4 do
  if redis.call('HDEL', running, items[i]) == 1 then
    redis.call('LPUSH', failed, items[i + 1])
    if items[i + 2] ~= '' and own_marker(queued, items[i + 2], items[i + 3]) then
      redis.call('HDEL', queued, items[i + 2])
    end
    moved = moved + 1
  end
end
return moved
