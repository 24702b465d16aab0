-- settle: messages of touches ended: a touch ends well with its first arrival, and badly with its last failure.
-- Promise: of the two callbacks one is queued, once, whatever is reported how often.
-- KEYS   1 pending    zset of touches that have not ended; the hash of a touch is {pending}:{uid}
--        2 to_log     list of rows that wait to be written
--        3 jobs       list; where callbacks are queued
-- ARGV   1 now        unix seconds
--        2 ...items   in turn: `succeeded`, `failed` or `retried`, touch, message, number of rows, the rows
-- Reply  for each message what its touch did: 1 goes on, 2 ended by it, 3 was not waiting any more
-- Crash  before: the callback of the message runs again. After: repeating it changes nothing but rows that are known.
local pending, to_log, jobs, now, items = KEYS[1], KEYS[2], KEYS[3], ARGV[1], ARGV

local function finish(touch, field)
  local key = pending .. ':' .. touch
  local callback = redis.call('HGET', key, field)
  redis.call('ZREM', pending, touch)
  redis.call('DEL', key, key .. ':remaining')
  if callback then
    redis.call('RPUSH', jobs, '{"queued_at":' .. now .. ',' .. string.sub(callback, 2))
  end
  return 2
end

local function settle(how, touch, message)
  local key = pending .. ':' .. touch
  local whole = redis.call('ZSCORE', pending, touch) and redis.call('EXISTS', key, key .. ':remaining') == 2
  if not whole then
    -- What is left of a broken one goes, without a callback: nobody can say whether it had one.
    redis.call('ZREM', pending, touch)
    redis.call('DEL', key, key .. ':remaining')
    return 3
  end
  if how == 'retried' then return 1 end
  if how == 'succeeded' then return finish(touch, 'success_callback') end
  if redis.call('SREM', key .. ':remaining', message) == 0 then return 1 end
  if redis.call('EXISTS', key .. ':remaining') == 1 then return 1 end
  return finish(touch, 'failure_callback')
end

local results, at = {}, 2
while at <= #items do
  local how, touch, message, rows = items[at], items[at + 1], items[at + 2], tonumber(items[at + 3])
  if rows > 0 then redis.call('RPUSH', to_log, unpack(items, at + 4, at + 3 + rows)) end
  results[#results + 1] = settle(how, touch, message)
  at = at + 4 + rows
end
return results
