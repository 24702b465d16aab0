-- dispatch: reminders leave the purgatory together with the touches that they became.
-- Promise: all of them go, with their counts and touches, or none does.
-- KEYS   1 purgatory     zset of reminders that are being sent
--        2 handover      list of groups for the room of touches
--        3 ...counters   the counters of the block
-- ARGV   1 count         integer; how many reminders
--        2 groups        integer; how many groups
--        3 ...items      the reminders byte for byte, the groups, then one block of counts
-- Reply  1 done, 0 one of them was not there any more
-- Crash  before: the next run sends them. After: they are sent.
local purgatory, handover, counters = KEYS[1], KEYS[2], KEYS
local count, groups, items = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

for at = 3, 2 + count do
  if not redis.call('ZSCORE', purgatory, items[at]) then return 0 end
end
redis.call('ZREM', purgatory, unpack(items, 3, 2 + count))
if groups > 0 then redis.call('RPUSH', handover, unpack(items, 3 + count, 2 + count + groups)) end
tally(counters, 2, items, 3 + count + groups)
return 1
