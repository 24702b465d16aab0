-- requeue_zset: puts a quarantined entry back into its schedule.
-- Promise: the member is in exactly one of quarantine and schedule; two operators cannot put it back twice.
-- KEYS   1 quarantine  list of quarantined entries
--        2 schedule    zset scored by due time
-- ARGV   1 entry       the quarantined entry, byte for byte
--        2 member      what to add: the raw entry, or its correction
--        3 score       when it is due
-- Reply  1 moved; 0 the entry is gone
-- Crash  before: nothing happened. After: it is scheduled; a repeat answers 0.
local quarantine, schedule, entry, member, score = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

if redis.call('LREM', quarantine, 1, entry) == 0 then
  return 0
end
redis.call('ZADD', schedule, score, member)
return 1
