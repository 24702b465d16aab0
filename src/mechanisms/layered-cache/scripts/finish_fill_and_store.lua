-- finish_fill_and_store: as finish_fill, for families that keep their value in Redis.
-- Promise: value, frame and release happen together or, when the lock is no longer ours, not at all.
-- KEYS   1 ...locks   triples of string lock, string owner, string value; one triple an id
-- ARGV   1 token      what the locks were taken with
--        2 channel    where the family's frames go
--        3 ttl_ms     integer; the stored value's life
--        4 ...items   pairs of value, frame; one pair an id
-- Reply  one integer an id: 1 stored, published and released; 0 lost, nothing done
-- Crash  before: the locks expire and another reads the source. After: finished; a repeat answers 0.
local locks, token, channel, ttl_ms, items = KEYS, ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV

local replies = {}
for at = 1, #locks, 3 do
  local lock, owner, value = locks[at], locks[at + 1], locks[at + 2]
  local item = 4 + (at - 1) / 3 * 2
  local ours = redis.call('GET', owner) == token and redis.call('EXISTS', lock) == 1
  if ours then
    redis.call('SET', value, items[item], 'PX', ttl_ms)
    redis.call('PUBLISH', channel, items[item + 1])
    redis.call('DEL', lock, owner)
  end
  replies[#replies + 1] = ours and 1 or 0
end
return replies
