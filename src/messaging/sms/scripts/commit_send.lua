-- commit_send: writes down what became of texts that were handed to the provider.
-- Promise: a text leaves the purgatory together with what follows from it: a pending message, or its callback; what is
--          no longer in the purgatory was settled before and changes nothing.
-- KEYS   1 purgatory      list; the texts that the send job holds
--        2 pending        zset of sids by due time; the hash of a sid is {pending}:{sid}
--        3 jobs           list; where callbacks are queued
--        4 recent         zset of sids whose text is known, by when that was written down
--        5 ...counters    the counters of the blocks
-- ARGV   1 now            unix seconds
--        2 forget_before  unix seconds; older sids are in no doubt any more
--        3 ...items       in turn: the text byte for byte, `pending` or `job`, sid or empty, due time, number of field
--                         arguments, field and value in turn, callback, block of counts
-- Reply  per item 1 applied; 0 no longer there; -2 the sid is pending already, nothing changed
-- Crash  before: the next run finds the text in the purgatory and looks it up. After: it is settled.
local purgatory, pending, jobs, recent, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS
local now, forget_before, items = ARGV[1], ARGV[2], ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

redis.call('ZREMRANGEBYSCORE', recent, '-inf', '(' .. forget_before)
local results, at = {}, 3
while at <= #items do
  local raw, outcome, sid, due, size = items[at], items[at + 1], items[at + 2], items[at + 3], tonumber(items[at + 4])
  local first_field = at + 5
  local callback, block = items[first_field + size], first_field + size + 1
  local result = redis.call('LREM', purgatory, 1, raw)
  if result == 1 and outcome == 'pending' and redis.call('ZSCORE', pending, sid) then
    redis.call('LPUSH', purgatory, raw)
    result = -2
  end
  if result == 1 then
    if sid ~= '' then
      redis.call('ZADD', recent, now, sid)
    end
    if outcome == 'pending' then
      local key = pending .. ':' .. sid
      redis.call('DEL', key)
      redis.call('HSET', key, unpack(items, first_field, first_field + size - 1))
      redis.call('ZADD', pending, due, sid)
    else
      redis.call('RPUSH', jobs, callback)
    end
    at = tally(counters, 4, items, block)
  else
    at = skip_tally(items, block)
  end
  results[#results + 1] = result
end
return results
