-- bury_worker: a silent worker is declared dead, and everything it held is settled.
-- Promise: acts only while the worker is still silent and holds exactly the given numbers, so two reapers cannot both act,
--          and whatever the worker says afterwards finds its numbers gone.
-- KEYS   1 workers      zset; workers by last heartbeat
--        2 worker       hash; who it was
--        3 running      hash; take number -> entry
--        4 hot          list; jobs waiting for any worker
--        5 failed       list; failed jobs, newest on the left
--        6 queued       hash; digest -> time its waiting entry was pushed
-- ARGV   1 worker_uid
--        2 dead_before  unix time; a heartbeat at or after it means alive
--        3 now          unix time
--        4 ...items     take number, destination (front or failed), text to push, digest or an empty text, and the time the
--                       entry was pushed; five per item, the latest number first; the text of a recurring job carries
--                       `now` as the time it was queued
-- Reply  1; 0 = alive or changed, nothing happened
-- Crash  before: nothing happened. After: buried.
local workers, worker, running, hot, failed, queued = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS[6]
local worker_uid, dead_before, now = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local items, first_item = ARGV, 4
-- include: own_marker.lua

local beat = redis.call('ZSCORE', workers, worker_uid)
if not beat or tonumber(beat) >= dead_before then return 0 end
if redis.call('HLEN', running) ~= (#items - first_item + 1) / 5 then return 0 end
for i = first_item, #items, 5 do
  if redis.call('HEXISTS', running, items[i]) == 0 then return 0 end
end
for i = first_item, #items, 5 do
  local destination, entry, digest, pushed_at = items[i + 1], items[i + 2], items[i + 3], items[i + 4]
  local unstarted = digest ~= '' and own_marker(queued, digest, pushed_at)
  if digest ~= '' and not unstarted and redis.call('HEXISTS', queued, digest) == 1 then
    -- A newer entry of the same recurring job waits already; running this one too would double it.
  elseif destination == 'front' then
    redis.call('LPUSH', hot, entry)
    if digest ~= '' then redis.call('HSET', queued, digest, now) end
  else
    redis.call('LPUSH', failed, entry)
    if unstarted then redis.call('HDEL', queued, digest) end
  end
end
redis.call('DEL', running, worker)
redis.call('ZREM', workers, worker_uid)
return 1
