-- retire_set: deletes the set of a finished period, whose size SQL holds, and moves the earliest pointer past it.
-- Promise: only the earliest period is ever deleted, so a late repeat cannot touch a later one.
-- KEYS   1 members   set; who was seen in the period
--        2 earliest  string; earliest period not yet rotated
-- ARGV   1 period    unix date or unix month
-- Reply  1 deleted; 0 another worker was first
-- Crash  before: SQL holds the size already, the repeat writes the same. After: done.
local members, earliest, period = KEYS[1], KEYS[2], ARGV[1]

if redis.call('GET', earliest) ~= period then return 0 end
redis.call('DEL', members)
redis.call('SET', earliest, string.format('%.0f', tonumber(period) + 1))
return 1
