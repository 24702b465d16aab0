-- Milliseconds until the key expires; one that never would gets the expiry it should have had.
local function expiry_of(key, lifetime_ms)
  local left = redis.call('PTTL', key)
  if left >= 0 then return left end
  redis.call('PEXPIRE', key, lifetime_ms)
  return lifetime_ms
end
