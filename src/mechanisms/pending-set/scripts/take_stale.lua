-- take_stale: gives out members that are overdue and puts each off, so that nobody else gets it for a while.
-- Promise: a member is given out once per interval; its failures and its version count it.
-- KEYS   1 set         zset of members scored by due time; the hash of a member is {set}:{member}
--        2 quarantine  list of quarantined entries, newest first
-- ARGV   1 version_field  hash field that counts changes; empty for none
--        2 companions     suffixes of the sets beside the hash, joined by commas
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call; ids of healed hashes begin with it
--        6 bump_to            the new due time; must be later than now, or the caller would get the same ones for ever
--        7 max_items          integer >= 1
--        8 last_called_field  hash field that gets now; empty for none
--        9 failures_field     hash field that grows by one; empty for none
-- Reply  { healed, { { member, score, hash, companions... }... } } as they are afterwards; { -1, {} } refused
-- Crash  before: nothing happened. After: the members come again one interval later.
local set, quarantine = KEYS[1], KEYS[2]
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local bump_to, max_items, last_called_field, failures_field = ARGV[6], tonumber(ARGV[7]), ARGV[8], ARGV[9]

-- include: health.lua

if tonumber(bump_to) <= tonumber(now) then
  return { -1, {} }
end
local taken = {}
while #taken < max_items do
  local due = redis.call('ZRANGE', set, '-inf', now, 'BYSCORE', 'LIMIT', 0, max_items - #taken)
  if #due == 0 then
    break
  end
  for _, member in ipairs(due) do
    if pending_score(member) then
      local key = set .. ':' .. member
      if last_called_field ~= '' then
        redis.call('HSET', key, last_called_field, now)
      end
      if failures_field ~= '' then
        redis.call('HINCRBY', key, failures_field, 1)
      end
      if version_field ~= '' then
        redis.call('HINCRBY', key, version_field, 1)
      end
      redis.call('ZADD', set, bump_to, member)
      taken[#taken + 1] = snapshot(member)
    end
  end
end
return { healed, taken }
