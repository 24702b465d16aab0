-- nudge: a recurring job starts now instead of at its time, unless an entry of it waits already.
-- Promise: at most one entry of a recurring job waits at any time; its schedule does not change.
-- KEYS   1 queued  hash; digest -> time its waiting entry was pushed
--        2 hot     list; jobs waiting for any worker
-- ARGV   1 digest
--        2 now     unix time
--        3 entry   job JSON
-- Reply  1; 0 = already waiting
-- Crash  before: nothing happened. After: waiting.
local queued, hot = KEYS[1], KEYS[2]
local digest, now, entry = ARGV[1], ARGV[2], ARGV[3]

if redis.call('HSETNX', queued, digest, now) == 0 then return 0 end
redis.call('LPUSH', hot, entry)
return 1
