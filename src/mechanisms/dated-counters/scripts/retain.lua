-- retain: lets the counters of a day that SQL holds expire some time later, and moves the earliest pointer past the day.
-- Promise: what was counted after the snapshot is not passed over: then the pointer stays, and the next rotation stores it.
-- KEYS   1 earliest     string; earliest day not yet rotated
--        2 ...counters  hashes of the day
-- ARGV   1 date         the day
--        2 keep_ms      integer; how long the counters stay
--        3 ...counts    for each counter: how many pairs follow, then pairs of a field and its count in the snapshot
-- Reply  1 the pointer was moved; 0 it was elsewhere, or something was counted meanwhile
-- Crash  before: SQL and Redis both hold the counts, and the unconsumed rotation row says so. After: the expiry says it.
local earliest, counters, date, keep_ms, counts = KEYS[1], KEYS, ARGV[1], ARGV[2], ARGV

local at, same = 3, true
for position = 2, #counters do
  local key, pairs_given = counters[position], tonumber(counts[at])
  at = at + 1
  if redis.call('HLEN', key) ~= pairs_given then same = false end
  for _ = 1, pairs_given do
    if redis.call('HGET', key, counts[at]) ~= counts[at + 1] then same = false end
    at = at + 2
  end
  redis.call('PEXPIRE', key, keep_ms)
end
if not same or redis.call('GET', earliest) ~= date then return 0 end
redis.call('SET', earliest, string.format('%.0f', tonumber(date) + 1))
return 1
