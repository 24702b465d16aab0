-- attempt: checks every limit of each action, of whatever form, and records the action only where all let it pass.
-- Promise: the limits of one action are all read before any is written; actions are taken in order, each sees the ones before it.
-- KEYS   1 ...limits   one key a limit, the limits of one action side by side
-- ARGV   1 now         unix seconds
--        2 per_action  integer >= 1; how many limits each action has
--        3 ...rules    the rule of each limit of an action (form letter, then numbers), the same for all actions; then for each key
--                      the value or id that the action brings, empty where the form wants none
-- Reply  0 all may go on; else { action, failed, wait_ms, ..., -1, healed, ... }: a triple for each refused action with the
--        position of its first limit that refused; after -1 the positions of keys whose value was no number and counts as absent
-- Crash  before: nothing was counted. After: the actions are counted, and the caller never learns that they were allowed.
local limits, now, per_action, rules = KEYS, ARGV[1], tonumber(ARGV[2]), ARGV
local time, reply, healed = tonumber(now), {}, {}

-- include: expiry.fragment.lua

local function until_left(entry, window)
  return math.max(0, math.ceil((entry + window - time) * 1000))
end

local forms = {}
-- include: flag.fragment.lua
-- include: counter.fragment.lua
-- include: sliding_list.fragment.lua
-- include: sliding_set.fragment.lua
-- include: distinct_set.fragment.lua
-- include: distinct_times.fragment.lua

local parsed = {}
for at = 1, per_action do
  local text = rules[2 + at]
  local rule = { form = forms[string.sub(text, 1, 1)] }
  for number in string.gmatch(string.sub(text, 2), '%S+') do rule[#rule + 1] = tonumber(number) end
  parsed[at] = rule
end

local values = 2 + per_action
for first = 1, #limits, per_action do
  local failed, wait = 0, 0
  for at = 1, per_action do
    local rule, position = parsed[at], first + at - 1
    local refused = rule.form.check(limits[position], rule, rules[values + position], position)
    if refused then
      failed, wait = at, refused
      break
    end
  end
  for at = 1, per_action do
    local rule, position = parsed[at], first + at - 1
    if failed == 0 or rule[1] == 1 then rule.form.record(limits[position], rule, rules[values + position]) end
  end
  if failed > 0 then
    local size = #reply
    reply[size + 1], reply[size + 2], reply[size + 3] = (first - 1) / per_action + 1, failed, wait
  end
end
if #reply == 0 and #healed == 0 then return 0 end
reply[#reply + 1] = -1
for _, position in ipairs(healed) do reply[#reply + 1] = position end
return reply
