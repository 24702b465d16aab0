-- apply_once: counts what a committed SQL transaction staged, unless it was counted before.
-- Promise: the counts of one flag are applied once, however often and from how many processes this is tried.
-- KEYS   1 applied        string; flag of this staged count
--        2 ...counters    the keys of the operations, in their order
-- ARGV   1 flag_ms        integer; how long the flag is remembered
--        2 ...operations  for each operation its name and arguments
-- Reply  1 applied; 0 was applied before
-- Crash  before: nothing was counted. After: all of it was, and the flag says so.
local applied, counters, flag_ms, operations = KEYS[1], KEYS, ARGV[1], ARGV

-- include: operations.fragment.lua

if not redis.call('SET', applied, '1', 'NX', 'PX', flag_ms) then return 0 end
apply_operations(counters, 2, operations, 2)
return 1
