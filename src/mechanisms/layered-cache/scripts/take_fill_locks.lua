-- take_fill_locks: asks for the right to fill each of N ids that no nearer layer holds.
-- Promise: of all processes that ask for one id, exactly one is given it until it finishes, is purged, or the lock expires.
-- KEYS   1 ...locks   pairs of string lock, string owner; one pair an id
-- ARGV   1 token      random, names this asker; kept beside the lock so that only its holder can finish
--        2 ttl_ms     integer; the lock's life
-- Reply  one integer an id: 0 it is ours; above 0 another fills it, for at most that many more milliseconds
-- Crash  before: nothing happened. After: both keys expire, and the next asker is given the id.
local locks, token, ttl_ms = KEYS, ARGV[1], tonumber(ARGV[2])

local replies = {}
for at = 1, #locks, 2 do
  local lock, owner = locks[at], locks[at + 1]
  if redis.call('SET', lock, '1', 'NX', 'PX', ttl_ms) then
    redis.call('SET', owner, token, 'PX', ttl_ms)
    replies[#replies + 1] = 0
  else
    local left = redis.call('PTTL', lock)
    if left < 0 then
      -- A lock without expiry would block the id for good; whoever set it, it is given the usual life.
      redis.call('PEXPIRE', lock, ttl_ms)
      left = ttl_ms
    end
    replies[#replies + 1] = math.max(left, 1)
  end
end
return replies
