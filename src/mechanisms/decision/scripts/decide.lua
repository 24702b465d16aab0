-- decide (fragment): whether one failed try of a message is tried again or given up is decided once. The first to decide
-- writes the flag and gets nil; whoever repeats the step gets what was decided then, and must change nothing.
local function decide(flag_key, decision, ttl_ms)
  return redis.call('SET', flag_key, decision, 'NX', 'GET', 'PX', ttl_ms) or nil
end
