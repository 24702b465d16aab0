-- create: puts new links into the buffer, where they work at once.
-- Promise: a code that a waiting link has is refused; whatever is in the buffer has been counted.
-- KEYS   1 buffer      zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 earliest    string; the earliest day that is counted
--        3 ...days     hashes of the open days, the newest first
-- ARGV   1 ...items    for each day its date and first instant; then for each link its code, the time it was made, and 16
--                      arguments: the fields of its hash and their values in turn
-- Reply  1 or 0 for each link: made, or the code is taken
-- Crash  before: nothing is there. After: links that no message names; the search for leaks clears them away.
local buffer, earliest, day_keys, items, first_day = KEYS[1], KEYS[2], { unpack(KEYS, 3) }, ARGV, 1

-- include: counts.fragment.lua

local made = {}
for at = first_item, #items, 18 do
  local code, created_at = items[at], items[at + 1]
  local key = buffer .. ':' .. code
  local free = not redis.call('ZSCORE', buffer, code) and redis.call('EXISTS', key) == 0
  if free then
    redis.call('ZADD', buffer, created_at, code)
    redis.call('HSET', key, unpack(items, at + 2, at + 17))
    count(day_of(created_at), 'created')
  end
  made[#made + 1] = free and 1 or 0
end
store_counts()
return made
