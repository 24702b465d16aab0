-- decide_pending: has the provider asked about silent messages, or gives them up.
-- Promise: each silence is decided once; when newer information came in between, nothing is decided and nothing changes.
-- KEYS   1 set            zset of sids by due time; the hash of a sid is {set}:{sid}
--        2 quarantine     list of quarantined entries, newest first
--        3 recovery       list of sids to ask about
--        4 ...keys        the flag of each item, then the counters of the blocks
-- ARGV   1 version_field  hash field that counts changes
--        2 companions     none: empty
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call
--        6 count          integer >= 1; how many items
--        7 flag_ms        integer; how long flags are remembered
--        8 ...items       in turn: `retry` or `abandon`, sid, expected version, block of counts
-- Reply  per item { code, decision }; 1 decided now; 2 decided before; 0 changed or gone; -1 was broken, is cleared away
-- Crash  before: nothing is decided. After: flag, queue or removal, and counts are there.
local set, quarantine, recovery, keys = KEYS[1], KEYS[2], KEYS[3], KEYS
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local count, flag_ms, items = tonumber(ARGV[6]), ARGV[7], ARGV

-- include: ../../../mechanisms/pending-set/scripts/health.lua
-- include: ../../../mechanisms/decision/scripts/decide.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local results, at = {}, 8
for item = 1, count do
  local decision, sid, expected, block = items[at], items[at + 1], items[at + 2], at + 3
  local code, stored = 2, redis.call('GET', keys[3 + item])
  if not stored then
    local before = healed
    local _, version = pending_score(sid)
    code = healed > before and -1 or 0
    if version == expected then
      decide(keys[3 + item], decision, flag_ms)
      code = 1
      if decision == 'retry' then
        redis.call('RPUSH', recovery, sid)
      else
        forget(sid)
      end
    end
  end
  at = code == 1 and tally(keys, 3 + count, items, block) or skip_tally(items, block)
  results[item] = { code, stored or decision }
end
return results
