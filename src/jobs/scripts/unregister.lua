-- unregister: a worker leaves the fleet with empty hands.
-- Promise: no entry stays behind with a worker that is gone.
-- KEYS   1 workers     zset; workers by last heartbeat
--        2 worker      hash; who this worker is
--        3 running     hash; take number -> entry
-- ARGV   1 worker_uid
-- Reply  1; 0 = it still holds entries, nothing changed
-- Crash  before: the reaper will find it. After: gone.
local workers, worker, running = KEYS[1], KEYS[2], KEYS[3]
local worker_uid = ARGV[1]

if redis.call('EXISTS', running) == 1 then return 0 end
redis.call('ZREM', workers, worker_uid)
redis.call('DEL', worker)
return 1
