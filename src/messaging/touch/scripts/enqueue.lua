-- enqueue: queues touches, as many as there is room for.
-- Promise: each touch that is queued is counted; a group with a flag is taken once, and whole or not at all.
-- KEYS   1 to_send       list of touches that wait
--        2 seen          string; a flag of the group
--        3 ...counters   the counters of the blocks
-- ARGV   1 max_length    integer; how long the queue may grow, -1 without a limit
--        2 flag_ms       milliseconds that the group is remembered; 0 when it has no flag
--        3 count         integer; how many touches there are
--        4 ...items      in turn: the touch, its block of counts
-- Reply  1 or 0 for each touch: queued, or no room; -1 alone when the group was taken before
-- Crash  before: nothing is queued. After: with a flag a repeat is seen; without one the caller must not repeat.
local to_send, seen, counters = KEYS[1], KEYS[2], KEYS
local max_length, flag_ms, count, items = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local length, queued, at = redis.call('LLEN', to_send), {}, 4
if flag_ms > 0 then
  if redis.call('EXISTS', seen) == 1 then return { -1 } end
  if max_length >= 0 and length + count > max_length then max_length = 0 end
  if max_length ~= 0 then redis.call('SET', seen, '1', 'PX', flag_ms) end
end
while at <= #items do
  local fits = max_length < 0 or length < max_length
  if fits then
    length = redis.call('RPUSH', to_send, items[at])
    at = tally(counters, 2, items, at + 1)
  else
    at = skip_tally(items, at + 1)
  end
  queued[#queued + 1] = fits and 1 or 0
end
return queued
