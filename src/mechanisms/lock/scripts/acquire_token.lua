-- acquire_token: takes a token lock.
-- Promise: at most one token is ever in the key.
-- KEYS   1 lock      string; the holder's token
-- ARGV   1 token     22 random characters
--        2 lease_ms  milliseconds
-- Reply  1 acquired; -4 already_held: this very token, lease renewed; -1 other_host
-- Crash  before: nothing happened. After: the repeat with the same token answers already_held.
local lock, token, lease_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])

local present = redis.call('GET', lock)
if not present then
  redis.call('SET', lock, token, 'PX', lease_ms)
  return 1
end
if present ~= token then
  return -1
end
redis.call('PEXPIRE', lock, lease_ms)
return -4
