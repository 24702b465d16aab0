-- remove_if: ends members, if their version is still the expected one, and queues the jobs that their end causes.
-- Promise: member, hash and companions go together; the jobs of a member are queued exactly when it was removed.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
--        3 ...jobs     the job queue, where members have jobs
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 ...items       in turn: member, expected version or empty for any, number of jobs, the jobs
-- Reply  { healed, result of each item }; 1 removed; 0 missing; -1 changed
-- Crash  before: nothing happened. After: all are removed with their jobs queued; repeating answers 0.
local set, quarantine, jobs = KEYS[1], KEYS[2], KEYS[3]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local items, at = ARGV, 6

-- include: health.lua

local results = {}
while at <= #items do
  local member, version, count = items[at], items[at + 1], tonumber(items[at + 2])
  local result = 0
  local score, current = pending_score(member)
  if score then
    result = -1
    if version == '' or current == version then
      result = 1
      forget(member)
      if count > 0 then
        redis.call('RPUSH', jobs, unpack(items, at + 3, at + 2 + count))
      end
    end
  end
  results[#results + 1] = result
  at = at + 3 + count
end
return { healed, results }
