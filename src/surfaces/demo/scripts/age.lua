-- age: takes time off every lifetime in this Redis, for a clock that runs ahead of the server's own.
-- Promise: a key without a lifetime stays; one whose lifetime is over goes. Only for a Redis that holds nothing else: it walks all keys.
-- ARGV   1 milliseconds  integer >= 1; how much time has passed
-- Reply  how many keys went
-- Crash  before: nobody is older. After: everybody is; it must not be repeated.
local milliseconds = tonumber(ARGV[1])

local gone, cursor = 0, '0'
repeat
  local page = redis.call('SCAN', cursor, 'COUNT', 1000)
  cursor = page[1]
  for _, key in ipairs(page[2]) do
    local left = redis.call('PTTL', key)
    if left > milliseconds then
      redis.call('PEXPIRE', key, left - milliseconds)
    elseif left >= 0 then
      gone = gone + redis.call('DEL', key)
    end
  end
until cursor == '0'
return gone
