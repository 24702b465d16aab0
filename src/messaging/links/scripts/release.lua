-- release: takes links back whose code turned out to be taken in SQL, before anybody was told of them.
-- Promise: only the very link that was made goes, never another with its code; what goes is no longer counted.
-- KEYS   1 buffer    zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 earliest  string; the earliest day that is counted
--        3 ...days   hashes of the open days, the newest first
-- ARGV   1 ...items  for each day its date and first instant; then in turn: code, uid of the link, the time it was made
-- Reply  1 or 0 for each link: gone, or it was another's
-- Crash  before: the search for leaks finds them. After: they are gone.
local buffer, earliest, day_keys, items, first_day = KEYS[1], KEYS[2], { unpack(KEYS, 3) }, ARGV, 1

-- include: counts.fragment.lua
-- include: forget.fragment.lua

local released = {}
for at = first_item, #items, 3 do
  local ours = redis.call('HGET', buffer .. ':' .. items[at], 'uid') == items[at + 1]
  if ours then
    forget(items[at])
    count(day_of(items[at + 2]), 'created', nil, -1)
  end
  released[#released + 1] = ours and 1 or 0
end
store_counts()
return released
