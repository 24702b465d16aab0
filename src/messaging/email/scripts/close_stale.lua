-- close_stale: stops waiting for receipts, and tells the failure jobs of their mails.
-- Promise: a mail stops waiting together with its failure job being queued; one that changed meanwhile is left alone.
-- KEYS   1 pending   zset of message ids by when they were taken; the hash of an id is {pending}:{id}
--        2 jobs      list; where failure jobs are queued
-- ARGV   1 ...items  in turn: message id, score, uid of the mail, failure job
-- Reply  per item 1 closed; 0 gone or changed, nothing done
-- Crash  before: the next run finds the mail. After: it is closed.
local pending, jobs, items = KEYS[1], KEYS[2], ARGV

local results = {}
for at = 1, #items, 4 do
  local id, score, uid, job = items[at], tonumber(items[at + 1]), items[at + 2], items[at + 3]
  local key = pending .. ':' .. id
  local held = redis.call('ZSCORE', pending, id)
  if held and tonumber(held) == score and redis.call('HGET', key, 'uid') == uid then
    redis.call('ZREM', pending, id)
    redis.call('DEL', key)
    redis.call('RPUSH', jobs, job)
    results[#results + 1] = 1
  else
    results[#results + 1] = 0
  end
end
return results
