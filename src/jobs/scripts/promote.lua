-- promote: sleeping jobs that are due join the queue, the earliest first.
-- Promise: an entry is asleep or queued, never both.
-- KEYS   1 delayed    zset; jobs waiting for their time
--        2 hot        list; jobs waiting for any worker
-- ARGV   1 now        unix time
--        2 max_items  integer
-- Reply  how many moved
-- Crash  before: asleep. After: queued.
local delayed, hot = KEYS[1], KEYS[2]
local now, max_items = ARGV[1], ARGV[2]

local due = redis.call('ZRANGE', delayed, '-inf', now, 'BYSCORE', 'LIMIT', 0, max_items)
if #due == 0 then return 0 end
redis.call('ZREM', delayed, unpack(due))
redis.call('RPUSH', hot, unpack(due))
return #due
