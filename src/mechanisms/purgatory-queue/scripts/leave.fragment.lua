-- leave (fragment): takes items out of a purgatory one after the other. Nearly always they stand at its head in the order in
-- which they are settled, so the head is read once and cut off once; an item elsewhere is looked for by itself.
-- Uses the locals purgatory and most_leaving, how many items leave at most, of the including script, which calls
-- cut_left() when it is done with all of them and before it looks at the purgatory by itself.
local heads, cut, looks = nil, 0, 0

local function cut_left()
  if cut > 0 then redis.call('LTRIM', purgatory, cut, -1) end
  heads, cut = nil, 0
end

-- 1 when the item was there, else 0.
local function leave(raw)
  if not heads and looks < 3 then
    looks = looks + 1
    heads = redis.call('LRANGE', purgatory, 0, most_leaving - 1)
  end
  if heads and heads[cut + 1] == raw then
    cut = cut + 1
    return 1
  end
  cut_left()
  return redis.call('LREM', purgatory, 1, raw)
end
