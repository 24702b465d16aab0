-- finish_fill: publishes what the holder of each lock has read, and gives the locks back.
-- Promise: a holder whose lock expired or was purged publishes nothing, so a value read before a change never follows it.
-- KEYS   1 ...locks   pairs of string lock, string owner; one pair an id
-- ARGV   1 token      what the locks were taken with
--        2 channel    where the family's frames go
--        3 ...frames  one frame an id
-- Reply  one integer an id: 1 published and released; 0 lost, nothing done
-- Crash  before: the locks expire and another reads the source. After: finished; a repeat answers 0.
local locks, token, channel, frames = KEYS, ARGV[1], ARGV[2], ARGV

local replies = {}
for at = 1, #locks, 2 do
  local lock, owner = locks[at], locks[at + 1]
  local ours = redis.call('GET', owner) == token and redis.call('EXISTS', lock) == 1
  if ours then
    redis.call('PUBLISH', channel, frames[2 + (at + 1) / 2])
    redis.call('DEL', lock, owner)
  end
  replies[#replies + 1] = ours and 1 or 0
end
return replies
