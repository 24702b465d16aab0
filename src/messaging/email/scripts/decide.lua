-- decide: tries failed mails again later, or gives them up.
-- Promise: each failed try is decided once, by whoever comes first; a repeat gets the same answer and changes nothing.
-- KEYS   1 retrying  zset of mails by when to try again
--        2 urgent    zset; the same for the urgent lane
--        3 ...keys   the flag of each item, then the counters of the blocks
-- ARGV   1 count     integer >= 1; how many items
--        2 flag_ms   integer; how long flags are remembered
--        3 ...items  in turn: `retry` or `abandon`, `urgent` or `ordinary`, the mail of the next try, when it is due,
--                    block of counts
-- Reply  per item { fresh, decision }; fresh = 0: it was decided before
-- Crash  before: nothing is decided. After: flag, next try and counts are there.
local retrying, urgent, keys, count, flag_ms, items = KEYS[1], KEYS[2], KEYS, tonumber(ARGV[1]), ARGV[2], ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/decision/scripts/decide.lua

local results, at = {}, 3
for item = 1, count do
  local decision, lane, entry, due = items[at], items[at + 1], items[at + 2], items[at + 3]
  local stored = decide(keys[2 + item], decision, flag_ms)
  if stored then
    at = skip_tally(items, at + 4)
  else
    if decision == 'retry' then
      redis.call('ZADD', lane == 'urgent' and urgent or retrying, due, entry)
    end
    at = tally(keys, 2 + count, items, at + 4)
  end
  results[item] = { stored and 0 or 1, stored or decision }
end
return results
