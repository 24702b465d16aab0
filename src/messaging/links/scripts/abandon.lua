-- abandon: gives links up whose message never arrived.
-- Promise: a link that is being stored stays; of one that goes nothing is left.
-- KEYS   1 buffer      zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 to_persist  zset of codes by when to store them
--        3 purgatory   zset of codes that are being stored
--        4 earliest    string; the earliest day that is counted
--        5 ...days     hashes of the open days, the newest first
-- ARGV   1 ...items    for each day its date and first instant; then the codes
-- Reply  for each code `abandoned`, `already_persisting` or `dne`
-- Crash  before: the callback runs again. After: a repeat finds nothing.
local buffer, to_persist, purgatory, earliest = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local day_keys, items, first_day = { unpack(KEYS, 5) }, ARGV, 1

-- include: counts.fragment.lua
-- include: forget.fragment.lua

local outcomes = {}
for at = first_item, #items do
  local code = items[at]
  local held = redis.call('HMGET', buffer .. ':' .. code, 'page_identifier', 'created_at')
  local outcome = 'abandoned'
  if redis.call('ZSCORE', to_persist, code) or redis.call('ZSCORE', purgatory, code) then
    outcome = 'already_persisting'
  elseif not held[1] then
    outcome = 'dne'
  end
  if outcome == 'abandoned' then
    local day = day_of(held[2])
    count(day, 'abandons_attempted')
    count(day, 'abandoned', held[1] .. ':' .. #clicks_of(code))
  else
    count(TODAY, 'abandons_attempted')
    count(TODAY, 'abandon_failed', outcome)
  end
  if outcome ~= 'already_persisting' then forget(code) end
  outcomes[#outcomes + 1] = outcome
end
store_counts()
return outcomes
