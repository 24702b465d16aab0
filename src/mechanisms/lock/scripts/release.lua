-- release: gives an owner-aware lock up, or lets it end soon, if it is still ours.
-- Promise: another holder's lock is never touched.
-- KEYS   1 lock     string; the owner as JSON
-- ARGV   1 lock_id  the id we wrote
--        2 mode     DELETE, or EXPIRE: the TTL is lowered to at most 60 s instead
-- Reply  1 done; -1 stolen: another id is in it; -2 malformed; -3 not_set
-- Crash  before: the lock ends with its lease. After: it is gone; repeating answers not_set.
local lock, lock_id, mode = KEYS[1], ARGV[1], ARGV[2]

local present = redis.call('GET', lock)
if not present then
  return -3
end
local decoded, owner = pcall(cjson.decode, present)
if not decoded or type(owner) ~= 'table' or type(owner.lock_id) ~= 'string' then
  return -2
end
if owner.lock_id ~= lock_id then
  return -1
end
if mode == 'EXPIRE' then
  redis.call('PEXPIRE', lock, 60000, 'LT')
else
  redis.call('DEL', lock)
end
return 1
