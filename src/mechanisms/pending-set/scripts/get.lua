-- get: reads members with their hashes and companions as they are at one moment.
-- Promise: nothing changes but what was broken.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 ...members     whom to read
-- Reply  { healed, for each member { member, score, hash, companions... } or nil }
-- Crash  harmless: it is a read.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local members, first = ARGV, 6

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

for at = first, #members do
  local member, score = members[at], scores[at - first + 1]
  local flat = score and read_plainly(member)
  if flat then
    found[#found + 1] = { member, score, flat }
  else
    found[#found + 1] = pending_score(member) and snapshot(member)
  end
end
return { healed, found }
