-- beat: a worker says that it lives, and what it runs.
-- Promise: a worker that was declared dead never comes back under the same uid.
-- KEYS   1 workers     zset; workers by last heartbeat
--        2 worker      hash; who this worker is
-- ARGV   1 worker_uid
--        2 now         unix time
--        3 running     JSON of what it runs
-- Reply  1; 0 = declared dead, nothing changed
-- Crash  before: nothing happened. After: one heartbeat more.
local workers, worker = KEYS[1], KEYS[2]
local worker_uid, now, running = ARGV[1], ARGV[2], ARGV[3]

if not redis.call('ZSCORE', workers, worker_uid) then return 0 end
redis.call('ZADD', workers, now, worker_uid)
redis.call('HSET', worker, 'running', running)
return 1
