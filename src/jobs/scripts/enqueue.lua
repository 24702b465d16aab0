-- enqueue: appends jobs to the queue, all of them or none when it would grow too long.
-- Promise: either every entry is queued in the given order, or nothing changed.
-- KEYS   1 hot         list; jobs waiting for any worker
-- ARGV   1 max_length  integer; the longest the queue may become
--        2 ...entries  job JSON
-- Reply  the new length; -1 = backpressure
-- Crash  before: nothing happened. After: all are queued; a repeat would queue them twice, so it is never repeated.
local hot, max_length = KEYS[1], tonumber(ARGV[1])
local entries, first, slice = ARGV, 2, 1000

if redis.call('LLEN', hot) + #entries - first + 1 > max_length then return -1 end
for i = first, #entries, slice do
  redis.call('RPUSH', hot, unpack(entries, i, math.min(i + slice - 1, #entries)))
end
return redis.call('LLEN', hot)
