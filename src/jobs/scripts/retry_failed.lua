-- retry_failed: failed jobs get another chance.
-- Promise: a failure moves only if it is still exactly as it was read.
-- KEYS   1 failed    list; failed jobs, newest on the left
--        2 hot       list; jobs waiting for any worker
-- ARGV   1 ...items  failure JSON and new job JSON, or an empty text to discard, two per item
-- Reply  how many moved
-- Crash  before: failed. After: waiting, or discarded.
local failed, hot, items = KEYS[1], KEYS[2], ARGV

local moved = 0
for i = 1, #items, 2 do
  if redis.call('LREM', failed, 1, items[i]) == 1 then
    if items[i + 1] ~= '' then redis.call('RPUSH', hot, items[i + 1]) end
    moved = moved + 1
  end
end
return moved
