-- push: replaces the stored values of N ids and tells every process the new ones.
-- Promise: fills that began before it are fenced off, because their locks are gone.
-- KEYS   1 ...keys    count values to set, then the locks and owners to remove
-- ARGV   1 count      integer; how many ids
--        2 ttl_ms     integer; the stored values' life
--        3 channel    where the family's frames go
--        4 mirror     the caller's own channel
--        5 echo       what to say there behind the frames, so that the caller knows when it has seen them all
--        6 ...items   pairs of value, frame; one pair an id
-- Reply  how many processes the last frame reached
-- Crash  before: nothing happened. After: done; the caller that missed the reply purges, since a repeat could undo a later purge.
local keys, count, ttl_ms, channel = KEYS, tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local mirror, echo, items = ARGV[4], ARGV[5], ARGV

local reached = 0
for at = 1, count do
  redis.call('SET', keys[at], items[4 + at * 2], 'PX', ttl_ms)
  reached = redis.call('PUBLISH', channel, items[5 + at * 2])
end
for at = count + 1, #keys do redis.call('DEL', keys[at]) end
redis.call('PUBLISH', mirror, echo)
return reached
