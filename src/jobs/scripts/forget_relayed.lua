-- forget_relayed: the rows behind these flags are gone, so the flags need not live much longer.
-- Promise: a relay of the same rows that arrives late, from a process that was cut off, still finds them.
-- KEYS   1 ...flags  one per relayed row
-- ARGV   1 flag_ms   how long they live on
-- Reply  how many were there
-- Crash  before: the flags live as long as they were made for. After: shortened.
local flags, flag_ms = KEYS, ARGV[1]

local shortened = 0
for _, flag in ipairs(flags) do shortened = shortened + redis.call('PEXPIRE', flag, flag_ms) end
return shortened
