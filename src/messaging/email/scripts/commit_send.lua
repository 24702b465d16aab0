-- commit_send: writes down what became of mails that were handed to the provider, or not even that.
-- Promise: a mail leaves the purgatory together with what follows from it: waiting for its receipt, or its failure job;
--          what is no longer in the purgatory was settled before and changes nothing.
-- KEYS   1 purgatory    list; the mails that the send job holds
--        2 pending      zset of message ids by when they were taken; the hash of an id is {pending}:{id}
--        3 event        list of news, for mails whose acceptance is the last that is heard
--        4 jobs         list; where failure jobs are queued
--        5 ...counters  the counters of the blocks
-- ARGV   1 kinds        integer; how many different blocks of counts there are
--        2 ...items     the blocks, then in turn: the mail byte for byte, `accept` or `fail`, which block, uid, message id,
--                       score, number of field arguments, field and value in turn, news or failure job (may be empty)
-- Reply  per item 1 applied; 0 no longer there; -2 another mail awaits its receipt under this id, nothing changed
-- Crash  before: the next run finds the mail in the purgatory and sends it again. After: it is settled.
local purgatory, pending, event, jobs, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS
local kinds, items = tonumber(ARGV[1]), ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

-- Most mails of a call count the same, so each block is applied once, for all mails that it counts.
local blocks, times, at = {}, {}, 2
for kind = 1, kinds do
  blocks[kind], times[kind] = at, 0
  at = skip_tally(items, at)
end

local results = {}
while at <= #items do
  local raw, outcome, kind, uid, id, score, size =
    items[at], items[at + 1], tonumber(items[at + 2]), items[at + 3], items[at + 4], items[at + 5], tonumber(items[at + 6])
  local first_field = at + 7
  local follows = items[first_field + size]
  local key, result = pending .. ':' .. id, nil
  local holder = outcome == 'accept' and redis.call('HGET', key, 'uid')
  if holder and holder ~= uid then
    result = -2
  else
    result = redis.call('LREM', purgatory, 1, raw)
  end
  if result == 1 then
    if outcome == 'accept' then
      if holder then redis.call('DEL', key) end
      redis.call('HSET', key, unpack(items, first_field, first_field + size - 1))
      redis.call('ZADD', pending, score, id)
      if follows ~= '' then redis.call('RPUSH', event, follows) end
    else
      redis.call('RPUSH', jobs, follows)
    end
    times[kind] = times[kind] + 1
  end
  results[#results + 1] = result
  at = first_field + size + 1
end
for kind = 1, kinds do
  if times[kind] > 0 then tally(counters, 4, items, blocks[kind], times[kind]) end
end
return results
