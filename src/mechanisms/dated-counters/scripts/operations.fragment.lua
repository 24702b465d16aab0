-- apply_operations: runs encoded counter operations, whose keys and arguments begin at the given positions.
-- Answers how many ran, or -1 when an `unless` held and nothing was written.
local function apply_operations(keys, key, args, arg)
  local applied = 0
  while arg <= #args do
    local operation, first = args[arg], keys[key]
    if operation == 'low' then
      local held = tonumber(redis.call('GET', first))
      if not held or held > tonumber(args[arg + 1]) then redis.call('SET', first, args[arg + 1]) end
      key, arg = key + 1, arg + 2
    elseif operation == 'hlow' then
      local held = tonumber(redis.call('HGET', first, args[arg + 1]))
      if not held or held > tonumber(args[arg + 2]) then redis.call('HSET', first, args[arg + 1], args[arg + 2]) end
      key, arg = key + 1, arg + 3
    elseif operation == 'incr' then
      redis.call('INCRBY', first, args[arg + 1])
      key, arg = key + 1, arg + 2
    elseif operation == 'hincr' then
      redis.call('HINCRBY', first, args[arg + 1], args[arg + 2])
      key, arg = key + 1, arg + 3
    elseif operation == 'xhincr' then
      local field = args[arg + 1]
      -- A breakdown with too many different keys gathers the rest in one, so that its sum stays true.
      if redis.call('HLEN', first) >= 1000 and redis.call('HEXISTS', first, field) == 0 then field = '__other__' end
      redis.call('HINCRBY', first, field, args[arg + 2])
      key, arg = key + 1, arg + 3
    elseif operation == 'sadd' then
      redis.call('SADD', first, args[arg + 1])
      key, arg = key + 1, arg + 2
    elseif operation == 'smove' then
      local pointer, lowest = keys[key + 2], args[arg + 2]
      if redis.call('SMOVE', first, keys[key + 1], args[arg + 1]) == 1 then
        local held = tonumber(redis.call('GET', pointer))
        if not held or held > tonumber(lowest) then redis.call('SET', pointer, lowest) end
      end
      key, arg = key + 3, arg + 3
    elseif operation == 'unless' then
      local member = args[arg + 1]
      if redis.call('SISMEMBER', first, member) == 1 or redis.call('SISMEMBER', keys[key + 1], member) == 1 then
        return -1
      end
      key, arg = key + 2, arg + 2
    else
      return redis.error_reply('unknown counter operation ' .. operation)
    end
    applied = applied + 1
  end
  return applied
end
