-- decide_tries: failed notifications wait for their next try or are given up, each decided once.
-- Promise: the first decision about a try is made, queued and counted in one step; repeating it changes nothing.
-- KEYS   1 waiting            zset; where notifications of this stage wait for their next try
--        2 earliest           string; the earliest day that has counts
--        3 ...flags_and_days  the decision flag of each item, then hashes: the counts of each day
-- ARGV   1 flag_ms            integer; how long a decision is remembered
--        2 flag_count         integer; how many items there are
--        3 ...items           in turn: retry or abandon, the entry for the next try, its score, position of its day from
--                             1, that day's date
-- Reply  for each item: 1 decided now or 0 before, and the decision that stands
-- Crash  before: nothing was decided. After: all was; repeating answers what stands.
local waiting, earliest, keys = KEYS[1], KEYS[2], KEYS
local flag_ms, flag_count, items = ARGV[1], tonumber(ARGV[2]), ARGV

-- include: ../../../mechanisms/decision/scripts/decide.lua
-- include: count_on_days.fragment.lua

local wrong = wrongly_typed({ [waiting] = 'zset', [earliest] = 'string' }, keys, 3 + flag_count)
if wrong then return redis.error_reply('WRONGTYPE ' .. wrong .. ' has another type than it needs') end

local decisions = {}
for index = 1, flag_count do
  local at = 3 + (index - 1) * 5
  local decision = items[at]
  local stored = decide(keys[2 + index], decision, flag_ms)
  if not stored then
    if decision == 'retry' then redis.call('ZADD', waiting, items[at + 2], items[at + 1]) end
    local event = decision == 'retry' and 'retried' or 'abandoned'
    count_on(keys[2 + flag_count + tonumber(items[at + 3])], event, earliest, items[at + 4])
  end
  decisions[index] = { stored and 0 or 1, stored or decision }
end
return decisions
