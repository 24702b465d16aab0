-- count: how many errors of the last window there are.
-- Promise: errors older than the window are gone afterwards and never counted.
-- KEYS   1 errors     zset; error id -> time
-- ARGV   1 now        unix seconds
--        2 window_ms  integer >= 1
-- Reply  how many errors the window holds now
-- Crash  before or after: nothing is lost but errors that no longer count.
local errors, now, window_ms = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2])

redis.call('ZREMRANGEBYSCORE', errors, '-inf', string.format('%.6f', now - window_ms / 1000))
return redis.call('ZCARD', errors)
