-- push_progress: one more event in the life of a watched job.
-- Promise: events are numbered without gaps, and kept before they are published, so a late watcher can read what it missed.
-- KEYS   1 events   list; the last progress events
--        2 count    string; number of progress events so far
-- ARGV   1 event    progress JSON without its seq
--        2 channel  pub/sub channel of the watchers
--        3 ttl_ms   how long progress is kept
--        4 done     1 when this is the last event
-- Reply  { seq, subscribers }
-- Crash  before: nothing happened. After: kept and told.
local events, count = KEYS[1], KEYS[2]
local event, channel, ttl_ms, done = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local seq = redis.call('INCR', count)
local numbered = '{"seq":' .. seq .. ',' .. string.sub(event, 2)
redis.call('RPUSH', events, numbered)
redis.call('LTRIM', events, -50, -1)
redis.call('PEXPIRE', events, ttl_ms)
redis.call('PEXPIRE', count, ttl_ms)
local subscribers = redis.call('PUBLISH', channel, numbered)
if done == '1' then redis.call('PUBLISH', channel, 'done') end
return { seq, subscribers }
