-- take_all: forgets what the only worker of a made-up past has done, and gives it everything that waits or is due.
-- Promise: an entry waits, sleeps or is held; what a dead process held is held by the next one, before anything new.
-- KEYS   1 delayed  zset; jobs waiting for their time
--        2 hot      list; jobs waiting for any worker
--        3 queued   hash; recurring jobs of which an entry waits; whoever has work from now on may be nudged again
--        4 running  hash; number -> entry that the worker holds
-- ARGV   1 now      unix time
--        2 done     1: what it held is done; 0: it has just begun, and a process that died may have held something
-- Reply  the entries it holds now
-- Crash  before: nothing happened. After: held; the next process gets them again.
local delayed, hot, queued, running = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local now, done = ARGV[1], ARGV[2]

if done == '1' then redis.call('DEL', running) end
local held = redis.call('HVALS', running)
if #held > 0 then return held end
local due = redis.call('ZRANGE', delayed, '-inf', now, 'BYSCORE')
for _, entry in ipairs(due) do
  redis.call('ZREM', delayed, entry)
  redis.call('RPUSH', hot, entry)
end
local entries = redis.call('LRANGE', hot, 0, -1)
if #entries == 0 then return entries end
redis.call('DEL', hot, queued)
for number, entry in ipairs(entries) do redis.call('HSET', running, number, entry) end
return entries
