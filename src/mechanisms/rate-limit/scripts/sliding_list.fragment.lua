-- sliding list, rule `l 1 limit window_ms`: the times of the last attempts, refused ones too; the attempt that fills the
-- list within one window is the first to be refused.
forms.l = {
  check = function(key, rule, _, position)
    local limit, window = rule[2], rule[3] / 1000
    if limit <= 1 then return rule[3] end
    local entry = redis.call('LINDEX', key, 1 - limit)
    if not entry then return end
    local oldest = tonumber(entry)
    if not oldest then healed[#healed + 1] = position end
    if not oldest or oldest < time - window then return end
    -- By the next attempt this one is recorded too, so the entry after the oldest decides.
    local second = limit > 2 and redis.call('LINDEX', key, 2 - limit)
    return until_left(second and tonumber(second) or time, window)
  end,
  record = function(key, rule)
    redis.call('RPUSH', key, now)
    redis.call('LTRIM', key, -rule[2], -1)
    redis.call('PEXPIRE', key, rule[3])
  end,
}
