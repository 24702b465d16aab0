-- counter, rule `b punish limit window_ms` (the window starts with its first action) or `g 1 limit window_ms` (every
-- attempt starts the window anew, so that only a pause of a whole window clears the count).
local function counted(key, position)
  local held = redis.call('GET', key)
  if not held then return 0 end
  if #held <= 15 and string.find(held, '^%-?%d+$') then return tonumber(held) end
  redis.call('DEL', key)
  healed[#healed + 1] = position
  return 0
end

forms.b = {
  check = function(key, rule, _, position)
    if counted(key, position) >= rule[2] then return expiry_of(key, rule[3]) end
  end,
  record = function(key, rule)
    if redis.call('INCR', key) == 1 then redis.call('PEXPIRE', key, rule[3]) end
  end,
}

forms.g = {
  check = function(key, rule, _, position)
    -- The refused attempt itself starts the window anew.
    if counted(key, position) >= rule[2] then return rule[3] end
  end,
  record = function(key, rule)
    redis.call('INCR', key)
    redis.call('PEXPIRE', key, rule[3])
  end,
}
