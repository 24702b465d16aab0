-- replace: swaps the whole content of a key, so that readers see the old or the new and never a part.
-- Promise: whatever type and length the key had, it holds exactly the given items afterwards; no items means no key.
-- KEYS   1 key       list, set, zset or hash
-- ARGV   1 type      list | set | zset | hash
--        2 ttl_ms    integer; 0 = no expiry
--        3 ...items  list and set: elements; zset: score, member pairs; hash: field, value pairs
-- Reply  how many items the key holds now
-- Crash  before: the old content. After: the new content.
local key, type, ttl_ms, items = KEYS[1], ARGV[1], tonumber(ARGV[2]), ARGV

local commands = { list = 'RPUSH', set = 'SADD', zset = 'ZADD', hash = 'HSET' }
local counts = { list = 'LLEN', set = 'SCARD', zset = 'ZCARD', hash = 'HLEN' }
redis.call('DEL', key)
-- Lua can unpack some thousand values at once; an even number keeps pairs together.
for first = 3, #items, 1000 do
  redis.call(commands[type], key, unpack(items, first, math.min(first + 999, #items)))
end
if ttl_ms > 0 and #items > 2 then redis.call('PEXPIRE', key, ttl_ms) end
return redis.call(counts[type], key)
