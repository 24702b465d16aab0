-- enqueue: adds mails to the two send lanes, all or none, and counts them as queued.
-- Promise: the lanes together never grow beyond their limit; a call that was done is recognised by its flag and adds
--          nothing again.
-- KEYS   1 to_send      list; producers append on the right
--        2 urgent       list; the lane that goes first
--        3 seen         string; flag of this call or of this handed-over group
--        4 ...counters  the counters of the block
-- ARGV   1 max_length   integer; 0 = no limit
--        2 flag_ms      integer; how long the flag is remembered, 0 = no flag
--        3 ordinary     integer; how many mails for to_send
--        4 urgent_count integer; how many mails for urgent
--        5 ...items     the mails for to_send, those for urgent, then one block of counts
-- Reply  the new length of both; -1 refused, nothing written; -2 done before
-- Crash  before: nothing happened. After: all are queued and counted; a repeat with the flag answers -2.
local to_send, urgent, seen, counters = KEYS[1], KEYS[2], KEYS[3], KEYS
local max_length, flag_ms, ordinary, urgent_count, items =
  tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

if flag_ms > 0 and redis.call('EXISTS', seen) == 1 then
  return -2
end
local count = ordinary + urgent_count
local length = redis.call('LLEN', to_send) + redis.call('LLEN', urgent)
if max_length > 0 and length + count > max_length then
  return -1
end
if flag_ms > 0 then
  redis.call('SET', seen, '1', 'PX', flag_ms)
end
if ordinary > 0 then
  redis.call('RPUSH', to_send, unpack(items, 5, 4 + ordinary))
end
if urgent_count > 0 then
  redis.call('RPUSH', urgent, unpack(items, 5 + ordinary, 4 + count))
end
tally(counters, 3, items, 5 + count)
return length + count
