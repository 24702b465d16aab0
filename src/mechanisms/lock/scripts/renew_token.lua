-- renew_token: gives a token lock its full lease again, if it still has our token.
-- Promise: another holder's lock is never touched.
-- KEYS   1 lock      string; the holder's token
-- ARGV   1 token     22 random characters
--        2 lease_ms  milliseconds
-- Reply  1 renewed; -1 stolen: another token is in it; -3 not_set
-- Crash  before: the lease runs on. After: it is renewed; repeating is harmless.
local lock, token, lease_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])

local present = redis.call('GET', lock)
if not present then
  return -3
end
if present ~= token then
  return -1
end
redis.call('PEXPIRE', lock, lease_ms)
return 1
