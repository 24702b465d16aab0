-- settle: what became of notifications that were sent or checked: each leaves the purgatory for its next place, counted.
-- Promise: a notification that is no longer in the purgatory is passed over with all its effects; the types of all keys
-- are checked before the first change.
-- KEYS   1 purgatory  list; what the one worker holds now
--        2 cold       zset; tickets that rest
--        3 hot        list; jobs that wait for any worker
--        4 earliest   string; the earliest day that has counts
--        5 ...days    hashes; the counts of each day that an item names by position
-- ARGV   1 ...items   in turn: the entry byte for byte, what it becomes, its score in the cold set or nothing where it
--                     becomes a job, position of its day from 1, that day's date, the event that is counted
-- Reply  1 or 0 for each item: settled, or not there
-- Crash  before: the next run handles these again. After: all is done; repeating answers 0.
local purgatory, cold, hot, earliest, days, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS, ARGV

-- include: count_on_days.fragment.lua

local wrong = wrongly_typed({ [cold] = 'zset', [hot] = 'list', [earliest] = 'string' }, days, 5)
if wrong then return redis.error_reply('WRONGTYPE ' .. wrong .. ' has another type than it needs') end

local settled = {}
for at = 1, #items, 6 do
  local entry, payload, score = items[at], items[at + 1], items[at + 2]
  local removed = redis.call('LREM', purgatory, 1, entry)
  if removed == 1 then
    if score == '' then
      redis.call('RPUSH', hot, payload)
    else
      redis.call('ZADD', cold, score, payload)
    end
    count_on(days[4 + tonumber(items[at + 3])], items[at + 5], earliest, items[at + 4])
  end
  settled[#settled + 1] = removed
end
return settled
