-- quarantine: moves members whose hash cannot be read into the quarantine of their set.
-- Promise: a hash is in exactly one of the two; one that was changed since it was read stays.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 ...items       in turn: member, version that was read or empty for any, the quarantine entry
-- Reply  { healed, result of each item }; 1 moved; 0 missing; -1 changed
-- Crash  before: the next reader quarantines them. After: they are quarantined; repeating answers 0.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local items, first = ARGV, 6

-- include: health.lua

local results = {}
for at = first, #items, 3 do
  local member, version, entry = items[at], items[at + 1], items[at + 2]
  local result = 0
  if pending_score(member) then
    result = -1
    if version == '' or redis.call('HGET', set .. ':' .. member, version_field) == version then
      result = 1
      redis.call('LPUSH', quarantine, entry)
      forget(member)
    end
  end
  results[#results + 1] = result
end
return { healed, results }
