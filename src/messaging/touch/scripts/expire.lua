-- expire: touches whose end nobody told within the time fail.
-- Promise: the oldest go first, each with its failure callback, and are counted.
-- KEYS   1 pending       zset of touches that have not ended; the hash of a touch is {pending}:{uid}
--        2 jobs          list; where callbacks are queued
--        3 ...counters   the counters of the block
-- ARGV   1 now           unix seconds
--        2 cutoff        unix time; those that were reachable before it go
--        3 most          integer; how many at most
--        4 ...block      what one of them counts
-- Reply  the uids of those that went
-- Crash  before: the next search finds them. After: they have failed.
local pending, jobs, counters = KEYS[1], KEYS[2], KEYS
local now, cutoff, most, block = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local gone = redis.call('ZRANGE', pending, '-inf', '(' .. cutoff, 'BYSCORE', 'LIMIT', 0, most)
for _, touch in ipairs(gone) do
  local key = pending .. ':' .. touch
  local callback = redis.call('HGET', key, 'failure_callback')
  redis.call('ZREM', pending, touch)
  redis.call('DEL', key, key .. ':remaining')
  if callback then redis.call('RPUSH', jobs, '{"queued_at":' .. now .. ',' .. string.sub(callback, 2)) end
  tally(counters, 2, block, 4)
end
return gone
