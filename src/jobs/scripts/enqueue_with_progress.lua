-- enqueue_with_progress: queues one watched job and tells its watchers that it waits.
-- Promise: a watcher that sees `queued` knows that the job is in the queue.
-- KEYS   1 hot      list; jobs waiting for any worker
--        2 delayed  zset; jobs waiting for their time
--        3 events   list; the last progress events
--        4 count    string; number of progress events so far
-- ARGV   1 entry    job JSON
--        2 due      unix time it may start, or 0 for at once
--        3 channel  pub/sub channel of the watchers
--        4 event    progress JSON without its seq
--        5 ttl_ms      how long progress is kept
--        6 max_length  the longest the queue may become
-- Reply  the event's seq; -1 = backpressure, nothing happened
-- Crash  before: nothing happened. After: queued and told.
local hot, delayed, events, count = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local entry, due, channel, event, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local max_length = tonumber(ARGV[6])

if due == '0' and redis.call('LLEN', hot) >= max_length then return -1 end
local seq = redis.call('INCR', count)
local numbered = '{"seq":' .. seq .. ',' .. string.sub(event, 2)
redis.call('RPUSH', events, numbered)
redis.call('LTRIM', events, -50, -1)
redis.call('PEXPIRE', events, ttl_ms)
redis.call('PEXPIRE', count, ttl_ms)
redis.call('PUBLISH', channel, numbered)
if due == '0' then redis.call('RPUSH', hot, entry) else redis.call('ZADD', delayed, due, entry) end
return seq
