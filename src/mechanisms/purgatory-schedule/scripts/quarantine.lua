-- quarantine: moves members that cannot be read out of a sorted set and into its quarantine.
-- Promise: a member is in exactly one of the two; what is not in the set is not quarantined.
-- KEYS   1 purgatory   zset that holds the members
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 ...pairs    member, byte for byte, and its quarantine entry in turn
-- Reply  1 or 0 for each member: moved, or not there
-- Crash  before: the next reader quarantines them. After: they are quarantined; repeating answers 0.
local purgatory, quarantine = KEYS[1], KEYS[2]
local given = { unpack(ARGV) }

local moved = {}
for at = 1, #given, 2 do
  local removed = redis.call('ZREM', purgatory, given[at])
  if removed == 1 then
    redis.call('LPUSH', quarantine, given[at + 1])
  end
  moved[#moved + 1] = removed
end
return moved
