-- distinct times, rule `d punish limit window_ms`: as the distinct set, but each value keeps the time it first came and
-- is forgotten a window later.
forms.d = {
  check = function(key, rule, value)
    local limit, window = rule[2], rule[3] / 1000
    redis.call('ZREMRANGEBYSCORE', key, '-inf', string.format('%.6f', time - window))
    if redis.call('ZSCORE', key, value) or redis.call('ZCARD', key) < limit then return end
    local oldest = redis.call('ZRANGE', key, 0, 0, 'WITHSCORES')
    return oldest[2] and until_left(tonumber(oldest[2]), window) or rule[3]
  end,
  record = function(key, rule, value)
    redis.call('ZADD', key, 'NX', now, value)
    redis.call('PEXPIRE', key, rule[3])
  end,
}
