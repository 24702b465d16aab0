-- finish_delayed: clicks that had to wait were stored, cannot be, or wait on.
-- Promise: each leaves the purgatory once, with its counts; a sign-in that left no longer blocks its parent.
-- KEYS   1 purgatory    zset of clicks that are being stored
--        2 delayed      zset of clicks that wait, by when to store them; the hash of a click is {delayed}:{uid}
--        3 ...counters  the counters of the blocks
-- ARGV   1 ...items     in turn: uid, the time from which to store it or nothing when it is done, then its block of counts
-- Reply  1 or 0 for each click: it left, or it had left before
-- Crash  before: the next run finds the rows in SQL and comes here again. After: the clicks are stored.
local purgatory, delayed, counters, items = KEYS[1], KEYS[2], KEYS, ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local left, at = {}, 1
while at <= #items do
  local uid, due = items[at], items[at + 1]
  local removed = redis.call('ZREM', purgatory, uid)
  if removed == 1 then
    if due ~= '' then
      redis.call('ZADD', delayed, due, uid)
    else
      local parent = redis.call('HGET', delayed .. ':' .. uid, 'parent_uid')
      local child = delayed .. ':childof:' .. (parent or '')
      if parent and parent ~= '' and redis.call('GET', child) == uid then redis.call('DEL', child) end
      redis.call('DEL', delayed .. ':' .. uid)
    end
    at = tally(counters, 2, items, at + 2)
  else
    at = skip_tally(items, at + 2)
  end
  left[#left + 1] = removed
end
return left
