-- read_links: what waits in the buffer under these codes.
-- Promise: link and clicks are of one moment.
-- KEYS   1 buffer    zset of codes by the time they were made; the hash of a code is {buffer}:{code}
-- ARGV   1 ...codes  the codes
-- Reply  for each code the fields and values of its hash in turn, then its clicks
-- Crash  changes nothing.
local buffer, codes = KEYS[1], ARGV
local found = {}
for at, code in ipairs(codes) do
  found[at] = { redis.call('HGETALL', buffer .. ':' .. code), redis.call('LRANGE', buffer .. ':clicks:' .. code, 0, -1) }
end
return found
