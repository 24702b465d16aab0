-- requeue_pending: puts a quarantined hash back into its pending set.
-- Promise: member in the set <=> hash exists; a hash that the member got meanwhile is not overwritten.
-- KEYS   1 quarantine  list of quarantined entries
--        2 set         zset of members scored by due time
--        3 hash        the member's hash
-- ARGV   1 entry       the quarantined entry, byte for byte
--        2 member      whose hash it is
--        3 score       when it is due
--        4 ...fields   field and value in turn
-- Reply  1 moved; 0 the entry is gone; -1 duplicate: the member is pending again
-- Crash  before: nothing happened. After: it is pending; a repeat answers 0.
local quarantine, set, hash, entry, member, score = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV[2], ARGV[3]
local fields = { unpack(ARGV, 4) }

if redis.call('EXISTS', hash) == 1 or redis.call('ZSCORE', set, member) then
  return -1
end
if redis.call('LREM', quarantine, 1, entry) == 0 then
  return 0
end
redis.call('ZADD', set, score, member)
redis.call('HSET', hash, unpack(fields))
return 1
