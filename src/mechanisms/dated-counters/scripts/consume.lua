-- consume: subtracts a snapshot that SQL now holds, once, and moves the earliest pointer past a day that is empty.
-- Promise: what was counted after the snapshot stays; a second call with the same flag changes nothing.
-- KEYS   1 rotated      string; flag of this rotation
--        2 earliest     string; earliest day not yet rotated
--        3 ...counters  hashes and string counters of the day
-- ARGV   1 date         the day
--        2 flag_ms      integer; how long the flag is remembered
--        3 ...counts    for each counter: how many pairs follow (-1: one count of a string counter), then field and count pairs
-- Reply  1 subtracted; 0 was subtracted before
-- Crash  before: SQL and Redis both hold the counts, and the unconsumed rotation row says so. After: only SQL does.
local rotated, earliest, counters, date, flag_ms, counts = KEYS[1], KEYS[2], KEYS, ARGV[1], ARGV[2], ARGV

if not redis.call('SET', rotated, '1', 'NX', 'PX', flag_ms) then return 0 end

-- Nothing is left; less than nothing means that Redis had lost the count before, and is nothing too.
local function is_spent(count, left)
  if tonumber(count) < 0 then return left >= 0 end
  return left <= 0
end

local at, remains = 3, false
for position = 3, #counters do
  local key, pairs_given = counters[position], tonumber(counts[at])
  at = at + 1
  if pairs_given < 0 then
    if is_spent(counts[at], redis.call('DECRBY', key, counts[at])) then redis.call('DEL', key) end
    at = at + 1
  else
    for _ = 1, pairs_given do
      local field, count = counts[at], counts[at + 1]
      local left = redis.call('HINCRBY', key, field, string.format('%.0f', -tonumber(count)))
      if is_spent(count, left) then redis.call('HDEL', key, field) end
      at = at + 2
    end
  end
  if redis.call('EXISTS', key) == 1 then remains = true end
end
if not remains and redis.call('GET', earliest) == date then
  redis.call('SET', earliest, string.format('%.0f', tonumber(date) + 1))
end
return 1
