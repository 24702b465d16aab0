-- enlist: adds tokens to the live tokens of one holder.
-- Promise: expired ones are gone; never more than the cap, of which those that expire soonest go first.
-- KEYS   1 live       zset; jti -> expiry
-- ARGV   1 now        unix seconds
--        2 cap        integer >= 1
--        3 ...tokens  for each token two arguments: expiry, jti
-- Reply  the jtis that had to go because of the cap
-- Crash  before: nothing happened. After: the tokens are live; a repeat changes nothing.
local live, now, cap, tokens = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV

redis.call('ZREMRANGEBYSCORE', live, '-inf', now)
for at = 3, #tokens, 2 do
  if tonumber(tokens[at]) > tonumber(now) then redis.call('ZADD', live, tokens[at], tokens[at + 1]) end
end
local excess = redis.call('ZCARD', live) - cap
local gone = excess > 0 and redis.call('ZPOPMIN', live, excess) or {}
local last = redis.call('ZRANGE', live, -1, -1, 'WITHSCORES')
if last[2] then redis.call('PEXPIRE', live, math.max(1, math.ceil((tonumber(last[2]) - tonumber(now)) * 1000))) end
local jtis = {}
for at = 1, #gone, 2 do jtis[#jtis + 1] = gone[at] end
return jtis
