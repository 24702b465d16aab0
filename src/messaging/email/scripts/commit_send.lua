-- commit_send: writes down what became of mails that were handed to the provider, or not even that.
-- Promise: a mail leaves the purgatory together with what follows from it: waiting for its receipt, or its failure job;
--          what is no longer in the purgatory was settled before and changes nothing.
-- KEYS   1 purgatory    list; the mails that the send job holds
--        2 pending      zset of message ids by when they were taken; the hash of an id is {pending}:{id}
--        3 event        list of news, for mails whose acceptance is the last that is heard
--        4 jobs         list; where failure jobs are queued
--        5 ...counters  the counters of the blocks
-- ARGV   1 ...items     in turn: the mail byte for byte, `accept` or `fail`, uid, message id, score, number of field
--                       arguments, field and value in turn, news or failure job (may be empty), block of counts
-- Reply  per item 1 applied; 0 no longer there; -2 another mail awaits its receipt under this id, nothing changed
-- Crash  before: the next run finds the mail in the purgatory and sends it again. After: it is settled.
local purgatory, pending, event, jobs, counters, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS, ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local results, at = {}, 1
while at <= #items do
  local raw, outcome, uid, id, score, size =
    items[at], items[at + 1], items[at + 2], items[at + 3], items[at + 4], tonumber(items[at + 5])
  local first_field = at + 6
  local follows, block = items[first_field + size], first_field + size + 1
  local key, result = pending .. ':' .. id, nil
  local holder = outcome == 'accept' and redis.call('HGET', key, 'uid')
  if holder and holder ~= uid then
    result = -2
  else
    result = redis.call('LREM', purgatory, 1, raw)
  end
  if result == 1 then
    if outcome == 'accept' then
      redis.call('DEL', key)
      redis.call('HSET', key, unpack(items, first_field, first_field + size - 1))
      redis.call('ZADD', pending, score, id)
      if follows ~= '' then redis.call('RPUSH', event, follows) end
    else
      redis.call('RPUSH', jobs, follows)
    end
    at = tally(counters, 4, items, block)
  else
    at = skip_tally(items, block)
  end
  results[#results + 1] = result
end
return results
