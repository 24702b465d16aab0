-- distinct set, rule `s punish limit ttl_ms extend`: so many different values; one that is known costs nothing. With
-- extend = 1 every action starts the key's lifetime anew, else only the first does.
forms.s = {
  check = function(key, rule, value)
    if redis.call('SISMEMBER', key, value) == 0 and redis.call('SCARD', key) >= rule[2] then
      return expiry_of(key, rule[3])
    end
  end,
  record = function(key, rule, value)
    redis.call('SADD', key, value)
    if rule[4] == 1 or redis.call('PTTL', key) < 0 then redis.call('PEXPIRE', key, rule[3]) end
  end,
}
