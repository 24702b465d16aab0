-- push: appends items to a queue, all of them or none.
-- Promise: order is kept; a queue with a limit never grows beyond it.
-- KEYS   1 queue       list; consumers take from the left
-- ARGV   1 max_length  integer; -1 for no limit
--        2 ...items    what to append
-- Reply  the new length; -1 backpressure: nothing was appended
-- Crash  before: nothing happened. After: all items are in the queue.
local queue, max_length = KEYS[1], tonumber(ARGV[1])
local items = { unpack(ARGV, 2) }

if max_length >= 0 and redis.call('LLEN', queue) + #items > max_length then
  return -1
end
return redis.call('RPUSH', queue, unpack(items))
