-- schedule: sets when members are due.
-- Promise: a member is in the schedule once; an existing due time changes only as the mode allows.
-- KEYS   1 schedule  zset scored by due time
-- ARGV   1 mode      SET: always; NX: keep what is there; LT: only to an earlier time
--        2 ...pairs  score and member in turn
-- Reply  { added, changed }
-- Crash  before: nothing happened. After: all are scheduled; repeating changes nothing.
local schedule, mode = KEYS[1], ARGV[1]
local given = { unpack(ARGV, 2) }

local before = redis.call('ZCARD', schedule)
local touched
if mode == 'SET' then
  touched = redis.call('ZADD', schedule, 'CH', unpack(given))
else
  touched = redis.call('ZADD', schedule, mode, 'CH', unpack(given))
end
local added = redis.call('ZCARD', schedule) - before
return { added, touched - added }
