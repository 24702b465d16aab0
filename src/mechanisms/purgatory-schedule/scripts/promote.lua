-- promote: moves due members of a schedule to the end of a list, the earliest first.
-- Promise: a member is in exactly one of the two; a list with a limit never grows beyond it.
-- KEYS   1 schedule    zset scored by due time
--        2 list        list; consumers take from the left
-- ARGV   1 max_score   what is due at this time or earlier is moved
--        2 max_items   integer >= 1
--        3 max_length  integer; -1 for no limit
-- Reply  { moved, stop }; stop says why no more: src_empty, max_score (nothing else is due), max_count, backpressure
-- Crash  before: nothing happened. After: the members are in the list.
local schedule, list, max_score, max_items, max_length =
  KEYS[1], KEYS[2], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local room = max_items
if max_length >= 0 then
  room = math.min(room, math.max(0, max_length - redis.call('LLEN', list)))
end
local members = {}
if room > 0 then
  members = redis.call('ZRANGE', schedule, '-inf', max_score, 'BYSCORE', 'LIMIT', 0, room)
end
if #members > 0 then
  redis.call('ZREM', schedule, unpack(members))
  redis.call('RPUSH', list, unpack(members))
end
local stop = 'backpressure'
if redis.call('EXISTS', schedule) == 0 then
  stop = 'src_empty'
elseif #redis.call('ZRANGE', schedule, '-inf', max_score, 'BYSCORE', 'LIMIT', 0, 1) == 0 then
  stop = 'max_score'
elseif #members == max_items then
  stop = 'max_count'
end
return { #members, stop }
