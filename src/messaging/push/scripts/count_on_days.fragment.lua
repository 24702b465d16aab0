-- count_on_days (fragment): counting one event on its day, and the check of types that comes before any change, because a
-- script that fails halfway is not undone.
local function wrongly_typed(expected, days, first_day)
  for key, wanted in pairs(expected) do
    local present = redis.call('TYPE', key).ok
    if present ~= 'none' and present ~= wanted then return key end
  end
  for at = first_day, #days do
    local present = redis.call('TYPE', days[at]).ok
    if present ~= 'none' and present ~= 'hash' then return days[at] end
  end
end

local function count_on(day, event, earliest, date)
  local lowest = tonumber(redis.call('GET', earliest) or nil)
  if not lowest or tonumber(date) < lowest then redis.call('SET', earliest, date) end
  redis.call('HINCRBY', day, event, 1)
end
