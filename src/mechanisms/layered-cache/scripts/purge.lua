-- purge: forgets N ids everywhere: first what Redis holds of them, then, by frames, what processes hold.
-- Promise: fills that began before it are fenced off, because their locks are gone; receivers see it after every fill it undoes.
-- KEYS   1 ...keys    every string of the ids: value, lock, owner, as far as the family has them
-- ARGV   1 channel    where the family's frames go
--        2 ...frames  what to publish
-- Reply  how many processes the last frame reached
-- Crash  before: nothing happened. After: done; a repeat only costs source reads.
local keys, channel, frames = KEYS, ARGV[1], ARGV

if #keys > 0 then redis.call('DEL', unpack(keys)) end
local reached = 0
for at = 2, #frames do reached = redis.call('PUBLISH', channel, frames[at]) end
return reached
