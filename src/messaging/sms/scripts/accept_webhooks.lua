-- accept_webhooks: takes the news of a group of webhooks, and counts the whole group.
-- Promise: what is counted as accepted is in the queue; of those that make no sense the newest are kept.
-- KEYS   1 event          list of news
--        2 unprocessable  list of webhooks that make no sense, newest first
--        3 ...counters    the counters of the block
-- ARGV   1 kept           integer; how many that make no sense are kept
--        2 accepted       integer; how many events follow
--        3 refused        integer; how many that make no sense follow after them
--        4 ...items       the events, those that make no sense, then one block of counts
-- Reply  how many events were queued
-- Crash  before: nothing is counted and the senders get no answer. After: news and counts are there.
local event, unprocessable, counters = KEYS[1], KEYS[2], KEYS
local kept, accepted, refused, items = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

if accepted > 0 then
  redis.call('RPUSH', event, unpack(items, 4, 3 + accepted))
end
if refused > 0 then
  redis.call('LPUSH', unprocessable, unpack(items, 4 + accepted, 3 + accepted + refused))
  redis.call('LTRIM', unprocessable, 0, kept - 1)
end
tally(counters, 2, items, 4 + accepted + refused)
return accepted
