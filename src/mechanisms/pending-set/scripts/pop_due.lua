-- pop_due: removes members that are due and returns what they were.
-- Promise: a member is returned to one caller only; set, hash and companions go together.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 max_score      what is due at this time or earlier is removed, the earliest first
--        7 max_items      integer >= 1
-- Reply  { healed, { { member, score, hash, companions... }... } } as they were
-- Crash  before: nothing happened. After: they are gone, whether or not the reply arrived.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max_score, max_items = ARGV[6], tonumber(ARGV[7])

-- include: health.lua

local popped = {}
while #popped < max_items do
  local due = redis.call('ZRANGE', set, '-inf', max_score, 'BYSCORE', 'LIMIT', 0, max_items - #popped)
  if #due == 0 then
    break
  end
  for _, member in ipairs(due) do
    if pending_score(member) then
      popped[#popped + 1] = snapshot(member)
      forget(member)
    end
  end
end
return { healed, popped }
