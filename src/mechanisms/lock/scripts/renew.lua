-- renew: gives an owner-aware lock its full lease again, if it is still ours.
-- Promise: another holder's lock is never touched.
-- KEYS   1 lock      string; the owner as JSON
-- ARGV   1 lock_id   the id we wrote
--        2 lease_ms  milliseconds
-- Reply  1 renewed; -1 stolen: another id is in it; -3 not_set
-- Crash  before: the lease runs on. After: it is renewed; repeating is harmless.
local lock, lock_id, lease_ms = KEYS[1], ARGV[1], tonumber(ARGV[2])

-- include: fence.lua

if redis.call('EXISTS', lock) == 0 then
  return -3
end
if not holds_lock(lock, lock_id) then
  return -1
end
redis.call('PEXPIRE', lock, lease_ms)
return 1
