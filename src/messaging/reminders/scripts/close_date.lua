-- close_date: a day that was gone through in every zone is forgotten.
-- Promise: only the earliest day closes, and only when it is finished everywhere, or when it is too old to matter.
-- KEYS   1 earliest      string; the earliest day that is gone through
--        2 zones         zset of the zones of the day
--        3 ...progress   hashes of the day, one for each of its zones
-- ARGV   1 date          unix date
--        2 force         1 closes it whatever is left
-- Reply  1 closed, 0 not yet
-- Crash  before: the next run closes it. After: it is closed.
local earliest, zones, progress, date, force = KEYS[1], KEYS[2], KEYS, ARGV[1], ARGV[2] == '1'
if redis.call('GET', earliest) ~= date then return 0 end
if not force then
  if redis.call('ZCARD', zones) ~= #progress - 2 then return 0 end
  for at = 3, #progress do
    if redis.call('HGET', progress[at], 'finished') ~= '1' then return 0 end
  end
end
for at = 3, #progress do redis.call('DEL', progress[at]) end
redis.call('DEL', zones)
redis.call('SET', earliest, string.format('%d', tonumber(date) + 1))
return 1
