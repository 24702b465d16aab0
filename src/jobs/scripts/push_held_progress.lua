-- push_held_progress: the last word about a watched job, from the worker that still holds it.
-- Promise: a worker that was buried meanwhile tells nothing; whoever has the job now will tell how it ended.
-- KEYS   1 running  hash; take number -> entry
--        2 events   list; the last progress events
--        3 count    string; number of progress events so far
-- ARGV   1 number   take number
--        2 event    progress JSON without its seq
--        3 channel  pub/sub channel of the watchers
--        4 ttl_ms   how long progress is kept
-- Reply  the event's seq; 0 = no longer held, nothing happened
-- Crash  before: nothing was told. After: told; the entry is still held, and its next run tells again.
local running, events, count = KEYS[1], KEYS[2], KEYS[3]
local number, event, channel, ttl_ms = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

if redis.call('HEXISTS', running, number) == 0 then return 0 end
local seq = redis.call('INCR', count)
local numbered = '{"seq":' .. seq .. ',' .. string.sub(event, 2)
redis.call('RPUSH', events, numbered)
redis.call('LTRIM', events, -50, -1)
redis.call('PEXPIRE', events, ttl_ms)
redis.call('PEXPIRE', count, ttl_ms)
redis.call('PUBLISH', channel, numbered)
redis.call('PUBLISH', channel, 'done')
return seq
