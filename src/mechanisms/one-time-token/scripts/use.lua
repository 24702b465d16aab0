-- use: takes a token that is kept as a hash, once and only before its expiry.
-- Promise: of any number of callers exactly one gets 1; the clock decides on expiry, not the key's TTL.
-- KEYS   1 token          hash
-- ARGV   1 now            unix seconds
--        2 used_field     the field that says whether it was used: absent, empty or 0 = not yet
--        3 expires_field  the field with its expiry in unix seconds; empty = it has none
-- Reply  1 used now; -1 unknown; -2 was used before; -3 expired
-- Crash  before: nothing happened. After: the token is used, and the caller must be given a new one.
local token, now, used_field, expires_field = KEYS[1], tonumber(ARGV[1]), ARGV[2], ARGV[3]

if redis.call('EXISTS', token) == 0 then return -1 end
local used = redis.call('HGET', token, used_field)
if used and used ~= '' and used ~= '0' and used ~= 'false' then return -2 end
if expires_field ~= '' then
  local expires = tonumber(redis.call('HGET', token, expires_field))
  if not expires or expires <= now then return -3 end
end
redis.call('HSET', token, used_field, '1')
return 1
