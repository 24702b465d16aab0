-- sliding set, rule `z punish window_ms limit window_ms limit ...`, the longest window first: every recorded action by
-- id and time, counted over one or more windows. The first window that is full gives the wait.
forms.z = {
  check = function(key, rule)
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.6f', time - rule[2] / 1000))
    for at = 2, #rule, 2 do
      local window, limit = rule[at] / 1000, rule[at + 1]
      if limit < 1 then return rule[at] end
      local since = string.format('(%.6f', time - window)
      local count = redis.call('ZCOUNT', key, since, '+inf')
      if count >= limit then
        local leaver = redis.call('ZRANGEBYSCORE', key, since, '+inf', 'WITHSCORES', 'LIMIT', count - limit, 1)
        return until_left(tonumber(leaver[2]), window)
      end
    end
  end,
  record = function(key, rule, id)
    redis.call('ZADD', key, now, id)
    redis.call('PEXPIRE', key, rule[2] + 60000)
  end,
}
