-- quarantine: moves items that cannot be read out of a list and into its quarantine.
-- Promise: an item is in exactly one of list and quarantine; what is not in the list is not quarantined.
-- KEYS   1 list        list that holds the items
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 ...pairs    item, byte for byte, and its quarantine entry in turn
-- Reply  1 or 0 for each item: moved, or not there
-- Crash  before: the next reader quarantines them. After: they are quarantined; repeating answers 0.
local list, quarantine = KEYS[1], KEYS[2]
local pairs_given = { unpack(ARGV) }

local moved = {}
for at = 1, #pairs_given, 2 do
  local removed = redis.call('LREM', list, 1, pairs_given[at])
  if removed == 1 then
    redis.call('LPUSH', quarantine, pairs_given[at + 1])
  end
  moved[#moved + 1] = removed
end
return moved
