-- del_if_match: deletes a string if it has the expected value, such as a token lock that is still ours.
-- Promise: another value is never deleted.
-- KEYS   1 lock   string
-- ARGV   1 token  the value that may be deleted
-- Reply  1 deleted; 0 not ours
-- Crash  before: the key ends with its TTL. After: it is gone; repeating answers 0.
local lock, token = KEYS[1], ARGV[1]

if redis.call('GET', lock) ~= token then
  return 0
end
redis.call('DEL', lock)
return 1
