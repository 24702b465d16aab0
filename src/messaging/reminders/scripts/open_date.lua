-- open_date: begins to go through a day in these zones.
-- Promise: a day is opened once; its zones keep their order.
-- KEYS   1 zones     zset of the zones of the day by their place
--        2 earliest  string; the earliest day that is gone through
-- ARGV   1 date      unix date
--        2 ...names  the zones in order
-- Reply  1 opened, 0 it was open
-- Crash  before: the next run opens it. After: it is open.
local zones, earliest, date, names = KEYS[1], KEYS[2], ARGV[1], ARGV
if redis.call('EXISTS', zones) == 1 then return 0 end
for at = 2, #names do redis.call('ZADD', zones, at - 2, names[at]) end
local held = tonumber(redis.call('GET', earliest) or nil)
if not held or held > tonumber(date) then redis.call('SET', earliest, date) end
return 1
