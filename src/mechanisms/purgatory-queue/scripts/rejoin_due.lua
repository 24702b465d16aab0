-- rejoin_due (fragment): items that wait between two tries join the end of their queue once their delay is over.
local function rejoin_due(retrying, queue, now, count)
  local due = redis.call('ZRANGE', retrying, '-inf', now, 'BYSCORE', 'LIMIT', 0, count)
  if #due > 0 then
    redis.call('ZREM', retrying, unpack(due))
    redis.call('RPUSH', queue, unpack(due))
  end
end
