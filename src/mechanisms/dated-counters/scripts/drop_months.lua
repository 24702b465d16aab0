-- drop_months: deletes the counters of past months, which no table keeps.
-- Promise: the counter of the current month stays; the pointer names the current month afterwards.
-- KEYS   1 earliest   string; earliest month that may have a counter
--        2 ...months  string counters of the past months
-- ARGV   1 current    the current unix month
-- Reply  how many counters were deleted
-- Crash  before: nothing happened. After: done; a repeat finds nothing.
local earliest, months, current = KEYS[1], KEYS, ARGV[1]

local deleted = 0
for at = 2, #months do deleted = deleted + redis.call('DEL', months[at]) end
local held = tonumber(redis.call('GET', earliest))
if held and held < tonumber(current) then redis.call('SET', earliest, current) end
return deleted
