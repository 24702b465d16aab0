-- enqueue: adds texts to the send queue, all or none, and counts them as queued.
-- Promise: the queue never grows beyond its limit; a call that was done is recognised by its flag and adds nothing again.
-- KEYS   1 to_send      list; producers append on the right
--        2 seen         string; flag of this call or of this handed-over group
--        3 ...counters  the counters of the block
-- ARGV   1 max_length   integer; 0 = no limit
--        2 flag_ms      integer; how long the flag is remembered, 0 = no flag
--        3 count        integer >= 1; how many texts
--        4 ...items     the texts, then one block of counts
-- Reply  the new length; -1 refused, nothing written; -2 done before
-- Crash  before: nothing happened. After: all are queued and counted; a repeat with the flag answers -2.
local to_send, seen, counters = KEYS[1], KEYS[2], KEYS
local max_length, flag_ms, count, items = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

if flag_ms > 0 and redis.call('EXISTS', seen) == 1 then
  return -2
end
local length = redis.call('LLEN', to_send)
if max_length > 0 and length + count > max_length then
  return -1
end
if flag_ms > 0 then
  redis.call('SET', seen, '1', 'PX', flag_ms)
end
redis.call('RPUSH', to_send, unpack(items, 4, 3 + count))
tally(counters, 2, items, 4 + count)
return length + count
