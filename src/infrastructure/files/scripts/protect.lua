-- protect: puts objects on the list of what is deleted later, before anything is uploaded under their keys.
-- Promise: all members are on the list afterwards, or none was touched because the sweep holds one of them.
-- KEYS   1 purgatory        zset; member -> when to delete it
--        2 sweep_purgatory  zset; what the sweep is deleting right now
-- ARGV   1 due              unix time
--        2 keep             GT: a member that is there already keeps the later time, LT: the earlier
--        3 ...members       canonical JSON
-- Reply  number of members added; -1 being_swept: nothing was changed
-- Crash  before: nothing happened. After: the sweep finds the members when they are due.
local purgatory, sweep_purgatory, due, keep = KEYS[1], KEYS[2], ARGV[1], ARGV[2]
local members = { unpack(ARGV, 3) }

for _, member in ipairs(members) do
  if redis.call('ZSCORE', sweep_purgatory, member) then
    return -1
  end
end
local added = 0
for _, member in ipairs(members) do
  added = added + redis.call('ZADD', purgatory, keep, due, member)
end
return added
