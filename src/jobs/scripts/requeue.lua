-- requeue: gives held jobs back to the queue with new counters.
-- Promise: only an entry that is still held under its number moves, so a rescued job is never doubled; a recurring job of which
--          a newer entry waits already is dropped instead.
-- KEYS   1 running   hash; take number -> entry
--        2 hot       list; jobs waiting for any worker
--        3 queued    hash; digest -> time its waiting entry was pushed
-- ARGV   1 side      front or back
--        2 now       unix time
--        3 ...items  take number, new job JSON and digest or an empty text, three per item
-- Reply  how many left the worker's hands
-- Crash  before: still held. After: waiting.
local running, hot, queued = KEYS[1], KEYS[2], KEYS[3]
local push, now = ARGV[1] == 'front' and 'LPUSH' or 'RPUSH', ARGV[2]
local items = { unpack(ARGV, 3) }

local moved = 0
for i = 1, #items, 3 do
  local number, entry, digest = items[i], items[i + 1], items[i + 2]
  if redis.call('HDEL', running, number) == 1 then
    if digest == '' or redis.call('HSETNX', queued, digest, now) == 1 then redis.call(push, hot, entry) end
    moved = moved + 1
  end
end
return moved
