-- bump: raises members of a ranking and drops the lowest beyond its cap.
-- Promise: the ranking never has more members than its cap; its lifetime starts anew with every write.
-- KEYS   1 ranking   zset; member -> score
-- ARGV   1 cap       integer >= 1
--        2 ttl_ms    integer; 0 = no expiry
--        3 ...bumps  for each member two arguments: member, by
-- Reply  the new scores as text, in the order given; the empty text for a member that fell out at once
-- Crash  before: nothing happened. After: all members are raised; a repeat would raise them twice.
local ranking, cap, ttl_ms, bumps = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV

for at = 3, #bumps, 2 do redis.call('ZINCRBY', ranking, bumps[at + 1], bumps[at]) end
redis.call('ZREMRANGEBYRANK', ranking, 0, -cap - 1)
if ttl_ms > 0 then redis.call('PEXPIRE', ranking, ttl_ms) end
local scores = {}
for at = 3, #bumps, 2 do scores[#scores + 1] = redis.call('ZSCORE', ranking, bumps[at]) or '' end
return scores
