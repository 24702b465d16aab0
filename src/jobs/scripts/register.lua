-- register: a worker joins the fleet under a uid of its own.
-- Promise: from now on it may take jobs, and its silence will be noticed.
-- KEYS   1 workers    zset; workers by last heartbeat
--        2 worker     hash; who this worker is
-- ARGV   1 worker_uid
--        2 now        unix time
--        3 ...fields  field and value pairs of the worker hash
-- Reply  1
-- Crash  before: nothing happened. After: registered; if it never beats, it is buried like any silent worker.
local workers, worker = KEYS[1], KEYS[2]
local worker_uid, now = ARGV[1], ARGV[2]
local fields = { unpack(ARGV, 3) }

redis.call('ZADD', workers, now, worker_uid)
redis.call('HSET', worker, unpack(fields))
return 1
