-- push_capped: adds items to a list that keeps only its newest.
-- Promise: the list is never longer than its cap and, if it expires, expires a whole lifetime after the last write.
-- KEYS   1 list      list
-- ARGV   1 cap       integer >= 1
--        2 ttl_ms    integer; 0 = no expiry
--        3 newest    left | right; the side the newest item stands on
--        4 ...items  oldest first
-- Reply  the length afterwards
-- Crash  before: nothing happened. After: the items are in.
local list, cap, ttl_ms, newest, items = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV

local push = newest == 'left' and 'LPUSH' or 'RPUSH'
-- Only the last of the items can survive the trim.
for at = math.max(4, #items - cap + 1), #items do redis.call(push, list, items[at]) end
if newest == 'left' then
  redis.call('LTRIM', list, 0, cap - 1)
else
  redis.call('LTRIM', list, -cap, -1)
end
if ttl_ms > 0 then redis.call('PEXPIRE', list, ttl_ms) end
return redis.call('LLEN', list)
