-- effects (fragment): what the completion of items causes elsewhere: pushes, members, counters, pointers. A flat list of
-- name, position of the target, number of values, values; it begins at `at`, and targets follow `before_targets` others.
-- Lists are walked in place: a table of thousands of values cannot be unpacked.
local effect_types = {
  rpush = 'list', lpush = 'list', sadd = 'set', hincrby = 'hash', incrby = 'string', lower = 'string',
}

-- The first target whose key has another type than its effect needs, or nothing. Asked before any change, because
-- a script that fails halfway is not undone.
local function wrongly_typed(targets, before_targets, effects, at)
  while at <= #effects do
    local key, size = targets[before_targets + tonumber(effects[at + 1])], tonumber(effects[at + 2])
    local present = redis.call('TYPE', key).ok
    if present ~= 'none' and present ~= effect_types[effects[at]] then
      return key
    end
    at = at + 3 + size
  end
end

local function apply_effects(targets, before_targets, effects, at)
  while at <= #effects do
    local name, key, size = effects[at], targets[before_targets + tonumber(effects[at + 1])], tonumber(effects[at + 2])
    local first, last = at + 3, at + 2 + size
    if name == 'rpush' or name == 'lpush' or name == 'sadd' then
      redis.call(name, key, unpack(effects, first, last))
    elseif name == 'hincrby' then
      for field = first, last, 2 do
        redis.call('HINCRBY', key, effects[field], effects[field + 1])
      end
    elseif name == 'incrby' then
      redis.call('INCRBY', key, effects[first])
    elseif name == 'lower' then
      local present = tonumber(redis.call('GET', key) or nil)
      if not present or tonumber(effects[first]) < present then
        redis.call('SET', key, effects[first])
      end
    end
    at = last + 1
  end
end
