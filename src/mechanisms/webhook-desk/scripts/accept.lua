-- accept: takes a group of webhooks: queues their news, keeps those that make no sense, and counts the whole group.
-- Promise: what is counted as accepted is in the queue, or was put there when its flag was set; of those that make no sense
--          the newest are kept.
-- KEYS   1 event          list of news
--        2 unprocessable  list of webhooks that make no sense, newest first
--        3 ...keys        the flag of each flagged one, then the counters of the block
-- ARGV   1 kept           integer; how many that make no sense are kept
--        2 flag_ms        integer; how long a flagged one is remembered
--        3 flagged        integer; how many news with a flag come first
--        4 plain          integer; how many news without a flag follow
--        5 senseless      integer; how many that make no sense follow after them
--        6 ...items       the news, those that make no sense, then one block of counts
-- Reply  how many news were queued
-- Crash  before: nothing is counted and the senders get no answer. After: news, flags and counts are there.
local event, unprocessable, keys = KEYS[1], KEYS[2], KEYS
local kept, flag_ms, flagged, plain, senseless, items =
  tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV

-- include: ../../dated-counters/scripts/tally.fragment.lua

local queued = plain
for item = 1, flagged do
  if redis.call('SET', keys[2 + item], '1', 'NX', 'PX', flag_ms) then
    redis.call('RPUSH', event, items[5 + item])
    queued = queued + 1
  end
end
local at = 6 + flagged
if plain > 0 then
  redis.call('RPUSH', event, unpack(items, at, at + plain - 1))
end
at = at + plain
if senseless > 0 then
  redis.call('LPUSH', unprocessable, unpack(items, at, at + senseless - 1))
  redis.call('LTRIM', unprocessable, 0, kept - 1)
end
tally(keys, 2 + flagged, items, at + senseless)
return queued
