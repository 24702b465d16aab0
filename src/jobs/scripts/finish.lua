-- finish: forgets jobs that are done.
-- Promise: a number that is no longer held was rescued; finishing it changes nothing.
-- KEYS   1 running     hash; take number -> entry
-- ARGV   1 ...numbers  take numbers
-- Reply  how many were still held
-- Crash  before: they will run again. After: done.
local running, numbers = KEYS[1], ARGV

return redis.call('HDEL', running, unpack(numbers))
