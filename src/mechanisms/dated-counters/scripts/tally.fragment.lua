-- tally (fragment): counts what one applied item counts. A block is the number of its operations, then for each its name,
-- the place of its counter after `before` other keys, field and amount. Both functions answer where the block ends.
-- `times`, if given, counts the block for so many items at once.
local function skip_tally(args, at)
  return at + 1 + 4 * tonumber(args[at])
end

local function tally(counters, before, args, at, times)
  local last = skip_tally(args, at)
  at = at + 1
  while at < last do
    local name, key, field, amount = args[at], counters[before + tonumber(args[at + 1])], args[at + 2], args[at + 3]
    if name == 'low' then
      local held = tonumber(redis.call('GET', key) or nil)
      if not held or held > tonumber(amount) then redis.call('SET', key, amount) end
    else
      -- A breakdown with too many different keys gathers the rest in one, so that its sum stays true.
      if name == 'xhincr' and redis.call('HLEN', key) >= 1000 and redis.call('HEXISTS', key, field) == 0 then
        field = '__other__'
      end
      redis.call('HINCRBY', key, field, amount * (times or 1))
    end
    at = at + 4
  end
  return last
end
