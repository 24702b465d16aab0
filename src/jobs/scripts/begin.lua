-- begin: recurring jobs start, so their next occurrence may be queued again.
-- Promise: at most one entry of a recurring job waits at any time; the marker of a newer entry than the one that starts stays.
-- KEYS   1 queued    hash; digest -> time its waiting entry was pushed
-- ARGV   1 ...items  digest and the time its entry was pushed, two per item
-- Reply  how many markers were there
-- Crash  before: the marker stays, and whoever buries this worker knows that the entry never started. After: gone.
local queued, items = KEYS[1], ARGV
-- include: own_marker.lua

local begun = 0
for i = 1, #items, 2 do
  if own_marker(queued, items[i], items[i + 1]) then begun = begun + redis.call('HDEL', queued, items[i]) end
end
return begun
