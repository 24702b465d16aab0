-- reconcile: works news of mails in.
-- Promise: news leaves the purgatory together with everything that follows from it. It is applied only to the state that
--          it was judged by: if the mail has come or gone since, nothing changes and the caller judges again.
-- KEYS   1 purgatory    list; the news that the job holds
--        2 pending      zset of message ids; the hash of an id is {pending}:{id}
--        3 early        zset of news of mails that nobody knows yet
--        4 jobs         list; where callbacks are queued
--        5 ...counters  the counters of the blocks
-- ARGV   1 ...items     in turn: the news byte for byte, `found`, `abandoned` or `early`, message id, uid of the mail that
--                       was found, when to look again, callback (may be empty), block of counts
-- Reply  per item 1 applied; 0 no longer there; -1 changed meanwhile
-- Crash  before: the next run finds the news in the purgatory. After: it is done.
local purgatory, pending, early, jobs, counters, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS, ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local results, at = {}, 1
while at <= #items do
  local raw, kind, id, uid, due, job =
    items[at], items[at + 1], items[at + 2], items[at + 3], items[at + 4], items[at + 5]
  local key = pending .. ':' .. id
  local holder = redis.call('HGET', key, 'uid') or ''
  local result = -1
  if holder == uid then
    result = redis.call('LREM', purgatory, 1, raw)
  end
  if result == 1 then
    if kind == 'early' then
      redis.call('ZADD', early, due, raw)
    else
      if kind == 'found' then
        redis.call('DEL', key)
        redis.call('ZREM', pending, id)
      end
      if job ~= '' then redis.call('RPUSH', jobs, job) end
    end
    at = tally(counters, 4, items, at + 6)
  else
    at = skip_tally(items, at + 6)
  end
  results[#results + 1] = result
end
return results
