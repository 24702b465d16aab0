-- queue_persist: notes that the messages of links arrived, so that the links are stored for good.
-- Promise: a link is queued once, however often it is asked for.
-- KEYS   1 buffer      zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 to_persist  zset of codes by when to store them
--        3 purgatory   zset of codes that are being stored
--        4 earliest    string; the earliest day that is counted
--        5 ...days     hashes of the open days, the newest first
-- ARGV   1 due         unix time from which to store them
--        2 ...items    for each day its date and first instant; then the codes
-- Reply  for each code `queued`, `duplicated` or `dropped`
-- Crash  before: the callback runs again. After: a repeat is a duplicate.
local buffer, to_persist, purgatory, earliest = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local day_keys, due, items, first_day = { unpack(KEYS, 5) }, ARGV[1], ARGV, 2

-- include: counts.fragment.lua

local outcomes = {}
for at = first_item, #items do
  local code = items[at]
  local held = redis.call('HMGET', buffer .. ':' .. code, 'page_identifier', 'created_at')
  local page, outcome = held[1] or 'unknown', 'queued'
  if redis.call('ZSCORE', to_persist, code) or redis.call('ZSCORE', purgatory, code) then
    outcome = 'duplicated'
  elseif not held[1] or not redis.call('ZSCORE', buffer, code) then
    page, outcome = 'unknown', 'dropped'
  end
  if outcome == 'queued' then
    redis.call('ZADD', to_persist, due, code)
    count(day_of(held[2]), 'persist_queue_attempts')
    count(day_of(held[2]), 'persists_queued', page)
  else
    count(TODAY, 'persist_queue_attempts')
    count(TODAY, 'persist_queue_failed', page .. ':' .. outcome)
  end
  outcomes[#outcomes + 1] = outcome
end
store_counts()
return outcomes
