-- flag, rule `f punish window_ms`: one action, then none until the key is gone.
forms.f = {
  check = function(key, rule)
    local left = redis.call('PTTL', key)
    if left == -1 then
      redis.call('PEXPIRE', key, rule[2])
      return rule[2]
    end
    if left >= 0 then return left end
  end,
  record = function(key, rule)
    redis.call('SET', key, '1', 'PX', rule[2])
  end,
}
