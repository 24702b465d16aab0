-- accept_webhooks: takes the news of a group of notifications, and counts the whole group.
-- Promise: what is counted as accepted is in the queue, or was put there by an earlier delivery of the same notification;
--          of those that make no sense the newest are kept.
-- KEYS   1 event          list of news
--        2 unprocessable  list of notifications that make no sense, newest first
--        3 ...keys        the flag of each notification with news, then the counters of the block
-- ARGV   1 kept           integer; how many that make no sense are kept
--        2 flag_ms        integer; how long a notification is remembered
--        3 accepted       integer; how many news follow
--        4 refused        integer; how many that make no sense follow after them
--        5 ...items       the news, those that make no sense, then one block of counts
-- Reply  how many news were queued
-- Crash  before: nothing is counted and the senders get no answer. After: news, flags and counts are there.
local event, unprocessable, keys = KEYS[1], KEYS[2], KEYS
local kept, flag_ms, accepted, refused, items =
  tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local queued = 0
for item = 1, accepted do
  if redis.call('SET', keys[2 + item], '1', 'NX', 'PX', flag_ms) then
    redis.call('RPUSH', event, items[4 + item])
    queued = queued + 1
  end
end
if refused > 0 then
  redis.call('LPUSH', unprocessable, unpack(items, 5 + accepted, 4 + accepted + refused))
  redis.call('LTRIM', unprocessable, 0, kept - 1)
end
tally(keys, 2 + accepted, items, 5 + accepted + refused)
return queued
