-- count: counts actions under fixed-window counters, each action only where all of its counters let it pass.
-- Promise: the counters of one action are all read before any is raised; actions are taken in order, each sees the ones before it.
-- KEYS   1 ...counters  strings, the counters of one action side by side
-- ARGV   1 per_action   integer >= 1; how many counters each action has
--        2 ...rules     for each counter of an action two arguments, the same for all actions: limit, window_ms
-- Reply  0 all may go on; else { action, failed, wait_ms, ..., -1, healed, ... }: a triple for each refused action with the
--        position of its first counter that refused; after -1 the positions of keys whose value was no number and counts as absent
-- Crash  before: nothing was counted. After: the actions are counted, and the caller never learns that they were allowed.
local counters, per_action, rules = KEYS, tonumber(ARGV[1]), ARGV
local call, reply, healed = redis.call, {}, {}

-- include: expiry.fragment.lua

local function is_count(text)
  return #text <= 15 and string.find(text, '^%-?%d+$')
end

local function refuse(action, failed, wait)
  local size = #reply
  reply[size + 1], reply[size + 2], reply[size + 3] = action, failed, wait
end

if per_action == 1 then
  local limit, window_ms = tonumber(rules[2]), tonumber(rules[3])
  for action = 1, #counters do
    local key = counters[action]
    local count = redis.pcall('INCR', key)
    if type(count) == 'table' then
      -- Raises if the key is no string at all; otherwise the text in it was no number.
      call('GET', key)
      call('SET', key, '1')
      healed[#healed + 1] = action
      count = 1
    end
    if count > limit then
      call('DECR', key)
      refuse(action, 1, expiry_of(key, window_ms))
    elseif count == 1 then
      call('PEXPIRE', key, window_ms)
    end
  end
else
  for first = 1, #counters, per_action do
    local failed
    local held = call('MGET', unpack(counters, first, first + per_action - 1))
    for at = 1, per_action do
      local text = held[at]
      if text and not is_count(text) then
        call('DEL', counters[first + at - 1])
        healed[#healed + 1] = first + at - 1
        text = nil
      end
      if tonumber(text or 0) >= tonumber(rules[2 * at]) and not failed then failed = at end
    end
    if failed then
      local wait = expiry_of(counters[first + failed - 1], tonumber(rules[2 * failed + 1]))
      refuse((first - 1) / per_action + 1, failed, wait)
    else
      for at = 1, per_action do
        local key = counters[first + at - 1]
        if call('INCR', key) == 1 then call('PEXPIRE', key, rules[2 * at + 1]) end
      end
    end
  end
end

if #reply == 0 and #healed == 0 then return 0 end
reply[#reply + 1] = -1
for _, position in ipairs(healed) do reply[#reply + 1] = position end
return reply
