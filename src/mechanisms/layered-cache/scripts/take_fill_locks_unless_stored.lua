-- take_fill_locks_unless_stored: as take_fill_locks, for families that keep their value in Redis.
-- Promise: an id whose value was stored since the asker looked is not given out again, so the source is read once.
-- KEYS   1 ...locks   triples of string lock, string owner, string value; one triple an id
-- ARGV   1 token      random, names this asker
--        2 ttl_ms     integer; the lock's life
-- Reply  one integer an id: 0 it is ours; -1 the value is there now; above 0 another fills it, for that many milliseconds
-- Crash  before: nothing happened. After: both keys expire, and the next asker is given the id.
local locks, token, ttl_ms = KEYS, ARGV[1], tonumber(ARGV[2])

local replies = {}
for at = 1, #locks, 3 do
  local lock, owner, value = locks[at], locks[at + 1], locks[at + 2]
  if redis.call('EXISTS', value) == 1 then
    replies[#replies + 1] = -1
  elseif redis.call('SET', lock, '1', 'NX', 'PX', ttl_ms) then
    redis.call('SET', owner, token, 'PX', ttl_ms)
    replies[#replies + 1] = 0
  else
    local left = redis.call('PTTL', lock)
    if left < 0 then
      redis.call('PEXPIRE', lock, ttl_ms)
      left = ttl_ms
    end
    replies[#replies + 1] = math.max(left, 1)
  end
end
return replies
