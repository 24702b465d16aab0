-- take_recurring: recurring jobs that are due leave the schedule for the moment it takes to dispatch them.
-- Promise: a digest is in the schedule or in purgatory, never in neither; only the current version takes.
-- KEYS   1 recurring  zset; digest -> due time
--        2 purgatory  set; digests being dispatched
--        3 hash       string; digest of the whole set
-- ARGV   1 own_hash   what this version's set hashes to
--        2 now        unix time
--        3 max_items  integer
-- Reply  { next due time or an empty text, digest, due, digest, due, ... }; -1 = superseded, nothing was taken
-- Crash  before: due. After: in purgatory, where the next look finds it.
local recurring, purgatory, hash = KEYS[1], KEYS[2], KEYS[3]
local own_hash, now, max_items = ARGV[1], ARGV[2], ARGV[3]

if redis.call('GET', hash) ~= own_hash then return -1 end
local due = redis.call('ZRANGE', recurring, '-inf', now, 'BYSCORE', 'LIMIT', 0, max_items, 'WITHSCORES')
for i = 1, #due, 2 do
  redis.call('ZREM', recurring, due[i])
  redis.call('SADD', purgatory, due[i])
end
local next_due = redis.call('ZRANGE', recurring, 0, 0, 'WITHSCORES')
return { next_due[2] or '', unpack(due) }
