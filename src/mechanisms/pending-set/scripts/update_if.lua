-- update_if: changes members whose version is still the expected one.
-- Promise: of two writers that read the same version only one has an effect; the version grows by one with each.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 ...items       in turn: member, expected version, new score or empty, number of field arguments, field and
--                         value in turn
-- Reply  { healed, result of each item }; the new version; 0 missing; -1 changed
-- Crash  before: nothing happened. After: all are changed; repeating answers -1.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local items, at = ARGV, 6

-- include: health.lua

local results = {}
while at <= #items do
  local member, version, score, size = items[at], items[at + 1], items[at + 2], tonumber(items[at + 3])
  local key = set .. ':' .. member
  local result = 0
  local score_before, current = pending_score(member)
  if score_before then
    result = -1
    if current == version then
      if size > 0 then
        redis.call('HSET', key, unpack(items, at + 4, at + 3 + size))
      end
      if score ~= '' then
        redis.call('ZADD', set, score, member)
      end
      result = redis.call('HINCRBY', key, version_field, 1)
    end
  end
  results[#results + 1] = result
  at = at + 4 + size
end
return { healed, results }
