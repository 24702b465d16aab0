-- settle_wishes: forgets wishes of people that were followed.
-- Promise: a wish that was replaced by a newer one while it was followed stays, and is followed next.
-- KEYS   1 wishes    hash; number -> what its owner wants and when that was said
-- ARGV   1 ...pairs  in turn: number, the wish byte for byte as it was followed
-- Reply  how many were forgotten
-- Crash  before: the next run follows them again, which changes nothing. After: they are done.
local wishes, pairs = KEYS[1], ARGV

local forgotten = 0
for at = 1, #pairs, 2 do
  if redis.call('HGET', wishes, pairs[at]) == pairs[at + 1] then
    forgotten = forgotten + redis.call('HDEL', wishes, pairs[at])
  end
end
return forgotten
