-- purge: forgets N ids everywhere: first what Redis holds of them, then, by frames, what processes hold.
-- Promise: fills that began before it are fenced off, because their locks are gone; receivers see it after every fill it undoes.
-- KEYS   1 ...keys    every string of the ids: value, lock, owner, as far as the family has them
-- ARGV   1 channel    where the family's frames go
--        2 mirror     the caller's own channel
--        3 echo       what to say there behind the frames, so that the caller knows when it has seen them all
--        4 ...frames  what to publish
-- Reply  how many processes the last frame reached
-- Crash  before: nothing happened. After: done; a repeat only costs source reads.
local keys, channel, mirror, echo, frames = KEYS, ARGV[1], ARGV[2], ARGV[3], ARGV

if #keys > 0 then redis.call('DEL', unpack(keys)) end
local reached = 0
for at = 4, #frames do reached = redis.call('PUBLISH', channel, frames[at]) end
redis.call('PUBLISH', mirror, echo)
return reached
