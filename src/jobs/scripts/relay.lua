-- relay: jobs that were committed with SQL rows join the queue.
-- Promise: each outbox row is queued exactly once, however often it is relayed while its flag lives.
-- KEYS   1 hot       list; jobs waiting for any worker
--        2 delayed   zset; jobs waiting for their time
--        3 ...flags  one per item; exists when that row has been relayed
-- ARGV   1 flag_ms   how long a flag is kept
--        2 ...items  job JSON and due time (0 for at once), two per item
-- Reply  how many were new
-- Crash  before: nothing happened. After: queued; the rows are still there, and relaying them again finds the flags.
local hot, delayed, flag_ms = KEYS[1], KEYS[2], ARGV[1]
local flags, items = { unpack(KEYS, 3) }, { unpack(ARGV, 2) }

local queued = 0
for i, flag in ipairs(flags) do
  local entry, due = items[2 * i - 1], items[2 * i]
  if redis.call('SET', flag, '1', 'NX', 'PX', flag_ms) then
    if due == '0' then redis.call('RPUSH', hot, entry) else redis.call('ZADD', delayed, due, entry) end
    queued = queued + 1
  end
end
return queued
