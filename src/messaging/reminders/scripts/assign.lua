-- assign: gives reminders of one zone and day their times, and moves on.
-- Promise: nothing happens unless the reader stood where it was left; a registration gets one time a day.
-- KEYS   1 progress      hash; the last registration that was handled
--        2 queued        zset of reminders by when to send them
--        3 ...counters   the counters of the block
-- ARGV   1 from_start    start time of the last registration handled before, or nothing
--        2 from_uid      its uid, or nothing
--        3 to_start      start time of the last of these
--        4 to_uid        its uid
--        5 count         integer; how many reminders get a time
--        6 ...items      in turn: time, reminder; then one block of counts
-- Reply  1 done, 0 somebody else was here
-- Crash  before: the next run reads these registrations again. After: they have their times.
local progress, queued, counters = KEYS[1], KEYS[2], KEYS
local from_start, from_uid, to_start, to_uid = ARGV[1], ARGV[2], ARGV[3], ARGV[4]
local count, items = tonumber(ARGV[5]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local held = redis.call('HMGET', progress, 'start_time', 'uid')
if (held[1] or '') ~= from_start or (held[2] or '') ~= from_uid then return 0 end
if count > 0 then redis.call('ZADD', queued, 'NX', unpack(items, 6, 5 + 2 * count)) end
redis.call('HSET', progress, 'start_time', to_start, 'uid', to_uid)
tally(counters, 2, items, 6 + 2 * count)
return 1
