-- begin: recurring jobs start, so their next occurrence may be queued again.
-- Promise: at most one entry of a recurring job waits at any time.
-- KEYS   1 queued      hash; digest -> time its waiting entry was pushed
-- ARGV   1 ...digests  digests of the jobs that start
-- Reply  how many markers were there
-- Crash  before: the marker stays until it is stale. After: gone.
local queued, digests = KEYS[1], ARGV

return redis.call('HDEL', queued, unpack(digests))
