-- advance: moves a cursor from the position its reader worked from.
-- Promise: of two readers that worked from the same position one moves the cursor; it never jumps back over the other's step.
-- KEYS   1 cursor    string
-- ARGV   1 expected  the position it must have; empty = it must be absent
--        2 next      the new position; empty = the cursor is removed
-- Reply  1 moved; 0 it stands elsewhere
-- Crash  before: the step is repeated from the old position. After: it is done; a repeat answers 0.
local cursor, expected, next_position = KEYS[1], ARGV[1], ARGV[2]

if (redis.call('GET', cursor) or '') ~= expected then return 0 end
if next_position == '' then
  redis.call('DEL', cursor)
else
  redis.call('SET', cursor, next_position)
end
return 1
