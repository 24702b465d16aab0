-- requeue: gives held jobs back to the queue with new counters.
-- Promise: only an entry that is still held under its number moves, so a rescued job is never doubled; a recurring job of which
--          a newer entry waits already is dropped instead.
-- KEYS   1 running   hash; take number -> entry
--        2 hot       list; jobs waiting for any worker
--        3 queued    hash; digest -> time its waiting entry was pushed
-- ARGV   1 side      front or back
--        2 now       unix time
--        3 ...items  take number, new job JSON, digest or an empty text, and the time the entry was pushed before; four per
--                    item; the new JSON of a recurring job carries `now` as the time it was queued
-- Reply  how many left the worker's hands
-- Crash  before: still held. After: waiting.
local running, hot, queued = KEYS[1], KEYS[2], KEYS[3]
local push, now = ARGV[1] == 'front' and 'LPUSH' or 'RPUSH', ARGV[2]
local items, first_item = ARGV, 3
-- include: own_marker.lua

local moved = 0
for i = first_item, #items, 4 do
  local number, entry, digest, pushed_at = items[i], items[i + 1], items[i + 2], items[i + 3]
  if redis.call('HDEL', running, number) == 1 then
    if digest == '' then
      redis.call(push, hot, entry)
    elseif redis.call('HEXISTS', queued, digest) == 0 or own_marker(queued, digest, pushed_at) then
      redis.call('HSET', queued, digest, now)
      redis.call(push, hot, entry)
    end
    moved = moved + 1
  end
end
return moved
