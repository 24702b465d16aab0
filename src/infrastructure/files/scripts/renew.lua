-- renew: gives an upload that is still running more time.
-- Promise: a member that the sweep has taken, now or before, is never put back; its uploader learns of it instead.
-- KEYS   1 purgatory        zset; member -> when to delete it
--        2 sweep_purgatory  zset; what the sweep is deleting right now
-- ARGV   1 due              unix time; an earlier one than the present changes nothing
--        2 member           canonical JSON
-- Reply  1 renewed; 0 gone: swept before; -1 being_swept
-- Crash  before: nothing happened. After: the protection simply lasts longer.
local purgatory, sweep_purgatory, due, member = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

if redis.call('ZSCORE', sweep_purgatory, member) then
  return -1
end
if not redis.call('ZSCORE', purgatory, member) then
  return 0
end
redis.call('ZADD', purgatory, 'XX', 'GT', due, member)
return 1
