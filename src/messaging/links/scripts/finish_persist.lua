-- finish_persist: links that were stored, or could not be, leave the purgatory.
-- Promise: each link leaves once, with what was counted for its group; a link that has to wait keeps all its clicks.
-- KEYS   1 purgatory   zset of codes that are being stored
--        2 buffer      zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        3 to_persist  zset of codes by when to store them
--        4 ...counters the counters of the blocks
-- ARGV   1 ...items    in turn: code, `done`, `again` or `lost`, for `again` the time from which to store it, else nothing, then
--                      its block of counts
-- Reply  1 or 0 for each link: it left, or it had left before
-- Crash  before: the next run finds the rows in SQL and comes here again. After: the links are stored.
local purgatory, buffer, to_persist, counters, items = KEYS[1], KEYS[2], KEYS[3], KEYS, ARGV

-- include: forget.fragment.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local left, at = {}, 1
while at <= #items do
  local code, fate, due = items[at], items[at + 1], items[at + 2]
  local removed = redis.call('ZREM', purgatory, code)
  if removed == 1 then
    if fate == 'again' then
      if due ~= '' then redis.call('ZADD', to_persist, due, code) end
    else
      forget(code)
    end
    at = tally(counters, 3, items, at + 3)
  else
    at = skip_tally(items, at + 3)
  end
  left[#left + 1] = removed
end
return left
