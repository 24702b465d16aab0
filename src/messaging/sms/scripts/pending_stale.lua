-- pending_stale: queues the failure callback of messages that were silent for too long.
-- Promise: the callback tells the state after this step; who was changed or is not due any more is left alone.
-- KEYS   1 set            zset of sids by due time; the hash of a sid is {set}:{sid}
--        2 quarantine     list of quarantined entries, newest first
--        3 jobs           list; where callbacks are queued
--        4 ...counters    the counters of the blocks
-- ARGV   1 version_field  hash field that counts changes
--        2 companions     none: empty
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call
--        6 new_due        when to look again
--        7 ...items       in turn: sid, expected version, callback, block of counts
-- Reply  per item 1 applied; 0 changed meanwhile; -1 was broken, is cleared away
-- Crash  before: the next run finds them due. After: callback queued, due again later.
local set, quarantine, jobs, counters = KEYS[1], KEYS[2], KEYS[3], KEYS
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local new_due, items = ARGV[6], ARGV

-- include: ../../../mechanisms/pending-set/scripts/health.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local results, at = {}, 7
while at <= #items do
  local sid, expected, callback, block = items[at], items[at + 1], items[at + 2], at + 3
  local key, before = set .. ':' .. sid, healed
  local score = pending_score(sid)
  local result = healed > before and -1 or 0
  if score and tonumber(score) <= tonumber(now) and redis.call('HGET', key, version_field) == expected then
    redis.call('HSET', key, 'failure_job_last_called_at', now)
    redis.call('HINCRBY', key, 'num_failures', 1)
    redis.call('HINCRBY', key, version_field, 1)
    redis.call('ZADD', set, new_due, sid)
    redis.call('RPUSH', jobs, callback)
    result = 1
  end
  at = result == 1 and tally(counters, 3, items, block) or skip_tally(items, block)
  results[#results + 1] = result
end
return results
