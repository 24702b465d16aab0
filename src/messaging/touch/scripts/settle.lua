-- settle: messages of touches ended: a touch ends well with its first arrival, and badly with its last failure.
-- Promise: of the two callbacks one is queued, once, whatever is reported how often.
-- KEYS   1 pending    zset of touches that have not ended; the hash of a touch is {pending}:{uid}
--        2 to_log     list of rows that wait to be written
--        3 jobs       list; where callbacks are queued
--        4 to_tell    hash of waiting touches whose failure is to be told
-- ARGV   1 now        unix seconds
--        2 ...items   in turn: `succeeded`, `failed` or `retried`, touch, message, the job that tells of its failure or nothing,
--                     number of rows, the rows
-- Reply  for each message what its touch did: 1 goes on, 2 ended by it, 3 was not waiting any more
-- Crash  before: the callback of the message runs again. After: repeating it changes nothing but rows that are known.
local pending, to_log, jobs, to_tell, now, items = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV[1], ARGV

local function forget(touch)
  local key = pending .. ':' .. touch
  redis.call('ZREM', pending, touch)
  redis.call('DEL', key, key .. ':remaining')
  redis.call('HDEL', to_tell, touch)
end

local function queue(job)
  redis.call('RPUSH', jobs, '{"queued_at":' .. now .. ',' .. string.sub(job, 2))
end

local function finish(touch, field, tell)
  local callback = redis.call('HGET', pending .. ':' .. touch, field)
  forget(touch)
  if callback then queue(callback) end
  if tell ~= '' and tell ~= callback then queue(tell) end
  return 2
end

local function settle(how, touch, message, tell)
  local key = pending .. ':' .. touch
  local whole = redis.call('ZSCORE', pending, touch) and redis.call('EXISTS', key, key .. ':remaining') == 2
  if not whole then
    -- What is left of a broken one goes, without a callback: nobody can say whether it had one.
    forget(touch)
    return 3
  end
  if how == 'retried' then return 1 end
  if how == 'succeeded' then return finish(touch, 'success_callback', '') end
  if redis.call('SREM', key .. ':remaining', message) == 0 then return 1 end
  if redis.call('EXISTS', key .. ':remaining') == 1 then return 1 end
  return finish(touch, 'failure_callback', tell)
end

local results, at = {}, 2
while at <= #items do
  local how, touch, message, tell, rows = items[at], items[at + 1], items[at + 2], items[at + 3], tonumber(items[at + 4])
  if rows > 0 then redis.call('RPUSH', to_log, unpack(items, at + 5, at + 4 + rows)) end
  results[#results + 1] = settle(how, touch, message, tell)
  at = at + 5 + rows
end
return results
