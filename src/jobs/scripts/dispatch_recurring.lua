-- dispatch_recurring: recurring jobs are queued and scheduled again, in one step.
-- Promise: repeating it for a digest that somebody dispatched already has no effect, so rescue never doubles a run;
--          at most one entry of a recurring job waits at any time.
-- KEYS   1 recurring  zset; digest -> due time
--        2 purgatory  set; digests being dispatched
--        3 queued     hash; digest -> time its waiting entry was pushed
--        4 hash       string; digest of the whole set
--        5 hot        list; jobs waiting for any worker
-- ARGV   1 own_hash   what this version's set hashes to
--        2 now        unix time
--        3 ...items   digest, next due time, job JSON and stale_after seconds, four per item
-- Reply  per item 1 = queued, 2 = coalesced, 0 = already dispatched, 3 = queued over a stale marker; -1 = superseded
-- Crash  before: in purgatory. After: scheduled, and queued unless one waits already.
local recurring, purgatory, queued, hash, hot = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local own_hash, now = ARGV[1], ARGV[2]
local items = { unpack(ARGV, 3) }

if redis.call('GET', hash) ~= own_hash then return -1 end
local results = {}
for i = 1, #items, 4 do
  local digest, next_due, entry, stale_after = items[i], items[i + 1], items[i + 2], tonumber(items[i + 3])
  local result = 0
  if redis.call('SREM', purgatory, digest) == 1 then
    redis.call('ZADD', recurring, next_due, digest)
    local waiting_since = redis.call('HGET', queued, digest)
    if waiting_since and tonumber(waiting_since) > tonumber(now) - stale_after then
      result = 2
    else
      redis.call('LPUSH', hot, entry)
      redis.call('HSET', queued, digest, now)
      result = waiting_since and 3 or 1
    end
  end
  results[#results + 1] = result
end
return results
