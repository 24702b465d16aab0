-- decide_send: tries failed texts again later, or gives them up.
-- Promise: each failed try is decided once, by whoever comes first; a repeat gets the same answer and changes nothing.
-- KEYS   1 retrying  zset of texts by when to try again
--        2 ...keys   the flag of each item, then the counters of the blocks
-- ARGV   1 count     integer >= 1; how many items
--        2 flag_ms   integer; how long flags are remembered
--        3 ...items  in turn: `retry` or `abandon`, the text of the next try, when it is due, block of counts
-- Reply  per item { fresh, decision }; fresh = 0: it was decided before
-- Crash  before: nothing is decided. After: flag, next try and counts are there.
local retrying, keys, count, flag_ms, items = KEYS[1], KEYS, tonumber(ARGV[1]), ARGV[2], ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/decision/scripts/decide.lua

local results, at = {}, 3
for item = 1, count do
  local decision, entry, due = items[at], items[at + 1], items[at + 2]
  local stored = decide(keys[1 + item], decision, flag_ms)
  if stored then
    at = skip_tally(items, at + 3)
  else
    if decision == 'retry' then
      redis.call('ZADD', retrying, due, entry)
    end
    at = tally(keys, 1 + count, items, at + 3)
  end
  results[item] = { stored and 0 or 1, stored or decision }
end
return results
