-- acquire: takes an owner-aware lock, or says who stands in the way and lets dead locks die sooner.
-- Promise: at most one lock_id is ever in the key; a live holder's lock is never taken, only left to its lease.
-- KEYS   1 lock      string; the owner as JSON
-- ARGV   1 value     the owner JSON to write
--        2 hostname  who asks
--        3 lock_id   the id inside value
--        4 now       unix seconds
--        5 lease_ms  milliseconds that the lock lives without renewal
-- Reply  { code, age, holder }; 1 acquired; -4 already_held: this very id, lease renewed; -3 same_host: the earlier
--        process of this slot died, TTL at most 60 s; -1 other_host, above 6 hours of age TTL at most 1 h;
--        -5 malformed: TTL at most 300 s. age is a decimal text of seconds, holder a hostname; both may be empty.
-- Crash  before: nothing happened. After: the repeat with the same id answers already_held.
local lock, value, hostname, lock_id, now, lease_ms =
  KEYS[1], ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4]), tonumber(ARGV[5])

local present = redis.call('GET', lock)
if not present then
  redis.call('SET', lock, value, 'PX', lease_ms)
  return { 1, '', '' }
end
local decoded, owner = pcall(cjson.decode, present)
if
  not decoded
  or type(owner) ~= 'table'
  or type(owner.acquired_at) ~= 'number'
  or type(owner.hostname) ~= 'string'
  or type(owner.lock_id) ~= 'string'
then
  redis.call('PEXPIRE', lock, 300000, 'LT')
  return { -5, '', '' }
end
local age = now - owner.acquired_at
local age_text = string.format('%.6f', age)
if owner.lock_id == lock_id then
  redis.call('PEXPIRE', lock, lease_ms)
  return { -4, age_text, owner.hostname }
end
if owner.hostname == hostname then
  redis.call('PEXPIRE', lock, 60000, 'LT')
  return { -3, age_text, owner.hostname }
end
if age > 21600 then
  redis.call('PEXPIRE', lock, 3600000, 'LT')
end
return { -1, age_text, owner.hostname }
