-- expire: touches whose end nobody told within the time end now: badly, or well if they are known to have arrived.
-- Promise: of the two callbacks one is queued, once; what failed is counted and told.
-- KEYS   1 pending       zset of touches that have not ended; the hash of a touch is {pending}:{uid}
--        2 jobs          list; where callbacks are queued
--        3 to_tell       hash of waiting touches whose failure is to be told
--        4 ...counters   the counters of the block
-- ARGV   1 now           unix seconds
--        2 cutoff        unix time; only those that were reachable before it go
--        3 tell          name of the job that tells of failures
--        4 count         integer; how many touches
--        5 ...items      in turn: uid, 1 if it arrived; then one block with what a failure counts
-- Reply  for each touch 0 it waits on or ended before, 1 it failed, 2 it arrived
-- Crash  before: the next search finds them. After: they have ended.
local pending, jobs, to_tell, counters = KEYS[1], KEYS[2], KEYS[3], KEYS
local now, cutoff, tell, count, items = ARGV[1], tonumber(ARGV[2]), ARGV[3], tonumber(ARGV[4]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local function queue(job)
  redis.call('RPUSH', jobs, '{"queued_at":' .. now .. ',' .. string.sub(job, 2))
end

local ends = {}
for at = 5, 3 + 2 * count, 2 do
  local touch, arrived = items[at], items[at + 1] == '1'
  local key, since = pending .. ':' .. touch, tonumber(redis.call('ZSCORE', pending, touch) or nil)
  local fate = 0
  if since and since < cutoff then
    fate = arrived and 2 or 1
    local callback = redis.call('HGET', key, arrived and 'success_callback' or 'failure_callback')
    local told = redis.call('HGET', to_tell, touch)
    redis.call('ZREM', pending, touch)
    redis.call('DEL', key, key .. ':remaining')
    redis.call('HDEL', to_tell, touch)
    if callback then queue(callback) end
    if not arrived then
      if told then queue('{"name":"' .. tell .. '","kwargs":' .. told .. '}') end
      tally(counters, 3, items, 5 + 2 * count)
    end
  end
  ends[#ends + 1] = fate
end
return ends
