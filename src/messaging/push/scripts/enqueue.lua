-- enqueue: notifications join the queue and are counted, once per call, however often the call is repeated.
-- Promise: all of them with their counts, or none; a call whose flag is known changes nothing.
-- KEYS   1 to_send      list; notifications that wait to be sent
--        2 seen         string; flag of this call or of this hand-over
--        3 ...counters  the keys of the counter operations, in their order
-- ARGV   1 max_length   integer; the queue must not grow beyond it; -1: no limit
--        2 seen_ms      integer; how long the call is remembered
--        3 item_count   integer >= 1
--        4 ...values    the notifications, then for each counter operation its name and arguments
-- Reply  the length of the queue; -1 refused because it would be too long; -2 this call was here before
-- Crash  before: nothing happened. After: all are queued, and a repeat answers -2.
local to_send, seen, counters = KEYS[1], KEYS[2], KEYS
local max_length, seen_ms, item_count, values = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/operations.fragment.lua

if redis.call('EXISTS', seen) == 1 then return -2 end
local length = redis.call('LLEN', to_send) + item_count
if max_length >= 0 and length > max_length then return -1 end
redis.call('SET', seen, '1', 'PX', seen_ms)
redis.call('RPUSH', to_send, unpack(values, 4, 3 + item_count))
apply_operations(counters, 3, values, 4 + item_count)
return length
