-- finish_leaks: links that nobody claimed leave the buffer, after SQL has what could be saved of them.
-- Promise: a link that got another click meanwhile, or that is being stored now, stays.
-- KEYS   1 buffer      zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 to_persist  zset of codes by when to store them
--        3 purgatory   zset of codes that are being stored
--        4 earliest    string; the earliest day that is counted
--        5 ...days     hashes of the open days, the newest first
-- ARGV   1 ...items    for each day its date and first instant; then in turn: code, the clicks that were seen, `recovered`,
--                      `abandoned` or `duplicate`
-- Reply  1 or 0 for each link: it left, or it changed and is to be read again
-- Crash  before: the next search finds them again, and SQL has their rows already. After: they are gone.
local buffer, to_persist, purgatory, earliest = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local day_keys, items, first_day = { unpack(KEYS, 5) }, ARGV, 1

-- include: counts.fragment.lua
-- include: forget.fragment.lua

local left = {}
for at = first_item, #items, 3 do
  local code, seen, outcome = items[at], tonumber(items[at + 1]), items[at + 2]
  local waits = redis.call('ZSCORE', buffer, code) and not redis.call('ZSCORE', purgatory, code)
  local same = waits and redis.call('LLEN', buffer .. ':clicks:' .. code) == seen
  if same then
    count(day_of(redis.call('ZSCORE', buffer, code)), 'leaked', outcome)
    redis.call('ZREM', to_persist, code)
    forget(code)
  end
  left[#left + 1] = same and 1 or 0
end
store_counts()
return left
