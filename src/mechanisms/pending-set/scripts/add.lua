-- add: makes members pending, each with its hash and its companions.
-- Promise: member in the set <=> hash exists; a pending member is never overwritten.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 ...items       in turn: member, score, number of field arguments, field and value in turn; then for each
--                         companion the number of its members, its members
-- Reply  { healed, result of each item }; 1 added; 0 duplicate
-- Crash  before: nothing happened. After: all are pending; repeating answers 0.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local items, at = ARGV, 6

-- include: health.lua

local results = {}
while at <= #items do
  local member, score, size = items[at], items[at + 1], tonumber(items[at + 2])
  local key = set .. ':' .. member
  local absent = not pending_score(member)
  if absent then
    redis.call('ZADD', set, score, member)
    redis.call('HSET', key, unpack(items, at + 3, at + 2 + size))
  end
  at = at + 3 + size
  for _, suffix in ipairs(suffixes) do
    local count = tonumber(items[at])
    if absent then
      redis.call('DEL', key .. ':' .. suffix)
      if count > 0 then
        redis.call('SADD', key .. ':' .. suffix, unpack(items, at + 1, at + count))
      end
    end
    at = at + 1 + count
  end
  results[#results + 1] = absent and 1 or 0
end
return { healed, results }
