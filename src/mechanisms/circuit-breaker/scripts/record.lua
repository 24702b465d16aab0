-- record: notes errors of a provider, so that a burst of them opens the circuit.
-- Promise: the set holds exactly the errors of the last window, and expires with the newest of them.
-- KEYS   1 errors     zset; error id -> time
-- ARGV   1 now        unix seconds
--        2 window_ms  integer >= 1
--        3 ...ids     random ids, one an error
-- Reply  how many errors the window holds now
-- Crash  before: the errors go unnoticed. After: they are noted.
local errors, now, window_ms, ids = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV

redis.call('ZREMRANGEBYSCORE', errors, '-inf', string.format('%.6f', tonumber(now) - window_ms / 1000))
for at = 3, #ids do redis.call('ZADD', errors, now, ids[at]) end
redis.call('PEXPIRE', errors, window_ms)
return redis.call('ZCARD', errors)
