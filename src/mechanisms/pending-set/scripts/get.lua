-- get: reads members with their hashes and companions as they are at one moment.
-- Promise: nothing changes but what was broken.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 size           integer; how many fields every sound hash has, if they are always the same; else 0
--        7 ...members     the names of those fields, then whom to read
-- Reply  { healed, for each member the values of those fields and its score, where it has just those and nothing beside it;
--        else { member, score, hash, companions... } or nil }
-- Crash  harmless: it is a read.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local size, members = tonumber(ARGV[6]), ARGV
local first_name, first = 7, 7 + size

-- include: health.lua

-- Nearly all are as they should be, and then one look at each is enough.
local scores, found = redis.call('ZMSCORE', set, unpack(members, first)), {}

-- What nearly all are read by: a hash with its version, and nothing beside it. Everything else is looked at more closely.
local function read_plainly(member)
  local flat = companions == '' and redis.pcall('HGETALL', set .. ':' .. member)
  if not flat or flat.err or #flat == 0 then return nil end
  if version_field == '' then return flat end
  for at = 1, #flat, 2 do
    if flat[at] == version_field then return flat end
  end
end

-- Their names are known on both sides: saying them again for each would be half of the answer.
local function values_of(member, score)
  local key = set .. ':' .. member
  local values = redis.pcall('HMGET', key, unpack(members, first_name, first - 1))
  if values.err or redis.call('HLEN', key) ~= size then return nil end
  for at = 1, size do
    if not values[at] then return nil end
  end
  values[size + 1] = score
  return values
end

for at = first, #members do
  local member, score = members[at], scores[at - first + 1]
  local values = score and size > 0 and values_of(member, score)
  local flat = score and not values and read_plainly(member)
  if values then
    found[#found + 1] = values
  elseif flat then
    found[#found + 1] = { member, score, flat }
  else
    found[#found + 1] = pending_score(member) and snapshot(member)
  end
end
return { healed, found }
