-- counts (fragment): what a call counts, merged and written once at its end. Uses the locals earliest, day_keys, items and
-- first_day of the including script: day_keys holds the hash of each open day, the newest first; from first_day on the
-- items name the date and the first instant of each.
local dates, starts, first_item = {}, {}, first_day
for _ = 1, #day_keys do
  dates[#dates + 1], starts[#starts + 1] = tonumber(items[first_item]), tonumber(items[first_item + 1])
  first_item = first_item + 2
end

local TODAY = 1
local sums, counted, lowest = {}, {}, nil

-- The place of the day on which something made at that time counts: its own, or the oldest that is open.
local function day_of(created_at)
  local time = tonumber(created_at) or 0
  for place, start in ipairs(starts) do
    if time >= start then return place end
  end
  return #starts
end

local function add(key, field, by)
  if not sums[key] then
    sums[key] = {}
    counted[#counted + 1] = key
  end
  sums[key][field] = (sums[key][field] or 0) + by
end

local function count(place, event, word, by)
  add(day_keys[place], event, by or 1)
  if word then add(day_keys[place] .. ':extra:' .. event, word, by or 1) end
  if not lowest or dates[place] < lowest then lowest = dates[place] end
end

local function store_counts()
  if not lowest then return end
  local held = tonumber(redis.call('GET', earliest) or nil)
  if not held or held > lowest then redis.call('SET', earliest, string.format('%d', lowest)) end
  for _, key in ipairs(counted) do
    local size = string.find(key, ':extra:', 1, true) and redis.call('HLEN', key) or 0
    for field, by in pairs(sums[key]) do
      -- A breakdown with too many different keys gathers the rest in one, so that its sum stays true.
      if size >= 1000 and redis.call('HEXISTS', key, field) == 0 then field = '__other__' end
      redis.call('HINCRBY', key, field, by)
    end
  end
end
