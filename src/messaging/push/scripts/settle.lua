-- settle: what became of notifications that were sent or checked: each leaves the purgatory for its next place, counted.
-- Promise: a notification that is no longer in the purgatory is passed over with all its effects; the types of the places
-- are checked before the first change.
-- KEYS   1 purgatory    list; what the one worker holds now
--        2 cold         zset; tickets that rest
--        3 hot          list; jobs that wait for any worker
--        4 ...counters  the counters of all blocks
-- ARGV   1 ...items     in turn: the entry byte for byte, what it becomes, its score in the cold set or nothing where it
--                       becomes a job, then its block of counts
-- Reply  1 or 0 for each item: settled, or not there
-- Crash  before: the next run handles these again. After: all is done; repeating answers 0.
local purgatory, cold, hot, counters, items = KEYS[1], KEYS[2], KEYS[3], KEYS, ARGV

-- include: wrongly_typed.fragment.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local wrong = wrongly_typed({ [cold] = 'zset', [hot] = 'list' })
if wrong then return redis.error_reply('WRONGTYPE ' .. wrong .. ' has another type than it needs') end

local settled = {}
local at = 1
while at <= #items do
  local payload, score = items[at + 1], items[at + 2]
  local removed = redis.call('LREM', purgatory, 1, items[at])
  if removed == 1 then
    if score == '' then
      redis.call('RPUSH', hot, payload)
    else
      redis.call('ZADD', cold, score, payload)
    end
    at = tally(counters, 3, items, at + 3)
  else
    at = skip_tally(items, at + 3)
  end
  settled[#settled + 1] = removed
end
return settled
