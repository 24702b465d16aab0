-- move_due (fragment): moves the earliest due members of one sorted set into another, scores kept as they are written.
local function move_due(from, to, count, max_score)
  local due = redis.call('ZRANGE', from, '-inf', max_score, 'BYSCORE', 'LIMIT', 0, count, 'WITHSCORES')
  if #due == 0 then
    return 0
  end
  local scored, members = {}, {}
  for at = 1, #due, 2 do
    scored[#scored + 1] = due[at + 1]
    scored[#scored + 1] = due[at]
    members[#members + 1] = due[at]
  end
  redis.call('ZADD', to, unpack(scored))
  redis.call('ZREM', from, unpack(members))
  return #members
end
