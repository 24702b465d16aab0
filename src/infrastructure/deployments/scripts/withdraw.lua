-- withdraw: takes back a commit whose build came to nothing, unless another one is current by now.
-- Promise: only the commit that failed is ever replaced.
-- KEYS   1 build_hash  string; the commit of the unit's current build
-- ARGV   1 sha         the commit that could not be built
--        2 previous    the newest commit that is built, or empty when there is none
-- Reply  1 withdrawn / 0 another commit is current
-- Crash  before: nothing happened. After: the unit names the previous build again.
local build_hash, sha, previous = KEYS[1], ARGV[1], ARGV[2]
if redis.call('GET', build_hash) ~= sha then return 0 end
if previous == '' then redis.call('DEL', build_hash) else redis.call('SET', build_hash, previous) end
return 1
