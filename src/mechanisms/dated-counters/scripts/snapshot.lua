-- snapshot: the counts of one day, all of its keys at one moment.
-- Promise: changes nothing.
-- KEYS   1 ...counters  hashes and string counters of the day
-- Reply  for each key { field, count, field, count, ... } of a hash, the count of a string as { count }, {} if it is absent
-- Crash  nothing to leave behind.
local counters = KEYS

local contents = {}
for at, key in ipairs(counters) do
  local type = redis.call('TYPE', key).ok
  if type == 'hash' then
    contents[at] = redis.call('HGETALL', key)
  elseif type == 'none' then
    contents[at] = {}
  else
    contents[at] = { redis.call('GET', key) }
  end
end
return contents
