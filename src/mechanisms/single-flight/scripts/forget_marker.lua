-- forget_marker: gives the right to fetch back when fetching failed, so that the next asker need not wait for its end.
-- Promise: a value that somebody has written meanwhile is never removed.
-- KEYS   1 value  string; the text 1 while somebody fetches, else the value
-- Reply  1 the marker is gone; 0 there was none
-- Crash  before: the marker expires by itself. After: gone; a repeat answers 0.
local value = KEYS[1]

if redis.call('GET', value) ~= '1' then return 0 end
redis.call('DEL', value)
return 1
