-- slide: records actions in sliding windows, one set of times an action, where every window still has room.
-- Promise: times that have left the longest window are gone and never counted; actions are taken in order.
-- KEYS   1 ...actions  zsets; action id -> time
-- ARGV   1 now         unix seconds
--        2 windows     integer >= 1; how many windows the rule has
--        3 ...rules    for each window window_ms, limit, the longest first; then one id an action
-- Reply  0 all may go on; else { action, failed, wait_ms, ..., -1 }: a triple for each refused action; failed is always 1, the rule has one reason
-- Crash  before: nothing was recorded. After: the actions are recorded, and the caller never learns that they were allowed.
local actions, now, windows, rules = KEYS, ARGV[1], tonumber(ARGV[2]), ARGV
local call, reply, ids = redis.call, {}, 2 + 2 * windows
local time, lifetime = tonumber(now), tonumber(rules[3]) + 60000

local sinces, limits = {}, {}
for window = 1, windows do
  sinces[window] = string.format('%.6f', time - tonumber(rules[1 + 2 * window]) / 1000)
  limits[window] = tonumber(rules[2 + 2 * window])
end

local function refuse(action, window)
  local window_ms, since = tonumber(rules[1 + 2 * window]), '(' .. sinces[window]
  local wait = window_ms
  if limits[window] >= 1 then
    local held = call('ZCOUNT', actions[action], since, '+inf')
    local leaver = call('ZRANGEBYSCORE', actions[action], since, '+inf', 'WITHSCORES', 'LIMIT', held - limits[window], 1)
    wait = math.max(0, math.ceil((tonumber(leaver[2]) - time) * 1000 + window_ms))
  end
  local size = #reply
  reply[size + 1], reply[size + 2], reply[size + 3] = action, 1, wait
end

for action = 1, #actions do
  local key, full = actions[action], nil
  call('ZREMRANGEBYSCORE', key, '-inf', sinces[1])
  -- What is left lies inside the longest window, which is the first.
  if call('ZCARD', key) >= limits[1] then full = 1 end
  for window = 2, windows do
    if not full and call('ZCOUNT', key, '(' .. sinces[window], '+inf') >= limits[window] then full = window end
  end
  if full then
    refuse(action, full)
  else
    call('ZADD', key, now, rules[ids + action])
    call('PEXPIRE', key, lifetime)
  end
end
if #reply == 0 then return 0 end
reply[#reply + 1] = -1
return reply
