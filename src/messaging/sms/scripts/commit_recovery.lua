-- commit_recovery: writes down what the provider said about messages that it was asked about.
-- Promise: an answer becomes one event and is counted once; what is no longer in the purgatory changes nothing.
-- KEYS   1 purgatory    list; the sids that the recovery job holds
--        2 event        list of news
--        3 ...counters  the counters of the blocks
-- ARGV   1 ...items     in turn: sid, event or empty for none, block of counts
-- Reply  per item 1 applied; 0 no longer there
-- Crash  before: the next run asks again. After: the news waits to be worked in.
local purgatory, event, counters, items = KEYS[1], KEYS[2], KEYS, ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local results, at = {}, 1
while at <= #items do
  local sid, news, block = items[at], items[at + 1], at + 2
  local removed = redis.call('LREM', purgatory, 1, sid)
  if removed == 1 and news ~= '' then
    redis.call('RPUSH', event, news)
  end
  at = removed == 1 and tally(counters, 2, items, block) or skip_tally(items, block)
  results[#results + 1] = removed
end
return results
