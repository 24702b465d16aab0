-- reconcile: works news of mails in.
-- Promise: news leaves the purgatory together with everything that follows from it. It is applied only to the state that
--          it was judged by: if the mail has come or gone since, nothing changes and the caller judges again.
-- KEYS   1 purgatory    list; the news that the job holds
--        2 pending      zset of message ids; the hash of an id is {pending}:{id}
--        3 early        zset of news of mails that nobody knows yet
--        4 jobs         list; where callbacks are queued
--        5 ...counters  the counters of the blocks
-- ARGV   1 due          unix seconds; when to look at early news again
--        2 kinds        integer; how many different blocks of counts there are
--        3 ...items     the blocks, then in turn: the news byte for byte, `found`, `abandoned` or `early`, message id, uid of
--                       the mail that was found, which block, callback (may be empty)
-- Reply  per item 1 applied; 0 no longer there; -1 changed meanwhile
-- Crash  before: the next run finds the news in the purgatory. After: it is done.
local purgatory, pending, early, jobs, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS
local due, kinds, items = ARGV[1], tonumber(ARGV[2]), ARGV
local most_leaving = math.ceil(#items / 6)

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/leave.fragment.lua

-- Most news of a call count the same, so each block is applied once, for all that it counts.
local blocks, times, at = {}, {}, 3
for kind = 1, kinds do
  blocks[kind], times[kind] = at, 0
  at = skip_tally(items, at)
end

-- What ends is removed at the end; until then a second piece of news of the same mail must not find it.
local results, queued, ended, ended_keys, is_ended = {}, {}, {}, {}, {}
while at <= #items do
  local raw, how, id, uid, kind, job =
    items[at], items[at + 1], items[at + 2], items[at + 3], tonumber(items[at + 4]), items[at + 5]
  local key = pending .. ':' .. id
  local holder = not is_ended[id] and redis.call('HGET', key, 'uid') or ''
  local result = -1
  if holder == uid then
    result = leave(raw)
  end
  if result == 1 then
    if how == 'early' then
      redis.call('ZADD', early, due, raw)
    else
      if how == 'found' then
        is_ended[id] = true
        ended[#ended + 1], ended_keys[#ended_keys + 1] = id, key
      end
      if job ~= '' then queued[#queued + 1] = job end
    end
    times[kind] = times[kind] + 1
  end
  results[#results + 1] = result
  at = at + 6
end
cut_left()
if #ended > 0 then
  redis.call('DEL', unpack(ended_keys))
  redis.call('ZREM', pending, unpack(ended))
end
if #queued > 0 then redis.call('RPUSH', jobs, unpack(queued)) end
for kind = 1, kinds do
  if times[kind] > 0 then tally(counters, 4, items, blocks[kind], times[kind]) end
end
return results
