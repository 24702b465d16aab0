-- release: takes links back whose code turned out to be taken in SQL, before anybody was told of them.
-- Promise: only the very link that was made goes, never another with its code.
-- KEYS   1 buffer    zset of codes by the time they were made; the hash of a code is {buffer}:{code}
-- ARGV   1 ...items  in turn: code, uid of the link
-- Reply  1 or 0 for each link: gone, or it was another's
-- Crash  before: the search for leaks finds them. After: they are gone.
local buffer, items = KEYS[1], ARGV

-- include: forget.fragment.lua

local released = {}
for at = 1, #items, 2 do
  local ours = redis.call('HGET', buffer .. ':' .. items[at], 'uid') == items[at + 1]
  if ours then forget(items[at]) end
  released[#released + 1] = ours and 1 or 0
end
return released
