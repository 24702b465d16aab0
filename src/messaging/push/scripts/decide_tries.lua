-- decide_tries: failed notifications wait for their next try or are given up, each decided once.
-- Promise: the first decision about a try is made, queued and counted in one step; repeating it changes nothing.
-- KEYS   1 waiting                zset; where notifications of this stage wait for their next try
--        2 ...flags_and_counters  the decision flag of each item, then the counters of all blocks
-- ARGV   1 flag_ms                integer; how long a decision is remembered
--        2 flag_count             integer; how many items there are
--        3 ...items               in turn: retry or abandon, the entry for the next try, its score, its block of counts
-- Reply  for each item: 1 decided now or 0 before, and the decision that stands
-- Crash  before: nothing was decided. After: all was; repeating answers what stands.
local waiting, keys = KEYS[1], KEYS
local flag_ms, flag_count, items = ARGV[1], tonumber(ARGV[2]), ARGV

-- include: ../../../mechanisms/decision/scripts/decide.lua
-- include: wrongly_typed.fragment.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local wrong = wrongly_typed({ [waiting] = 'zset' })
if wrong then return redis.error_reply('WRONGTYPE ' .. wrong .. ' has another type than it needs') end

local decisions = {}
local at = 3
for index = 1, flag_count do
  local decision = items[at]
  local stored = decide(keys[1 + index], decision, flag_ms)
  if stored then
    at = skip_tally(items, at + 3)
  else
    if decision == 'retry' then redis.call('ZADD', waiting, items[at + 2], items[at + 1]) end
    at = tally(keys, 1 + flag_count, items, at + 3)
  end
  decisions[index] = { stored and 0 or 1, stored or decision }
end
return decisions
