-- unprotect: takes objects off the list of what is deleted later, because rows now say that they are wanted.
-- Promise: a member that the sweep holds stays with the sweep.
-- KEYS   1 purgatory   zset; member -> when to delete it
-- ARGV   1 ...members  canonical JSON
-- Reply  number of members removed; fewer than given: the sweep got the others first
-- Crash  before: the sweep decides by the rows. After: the objects are kept.
local purgatory = KEYS[1]
local members = { unpack(ARGV) }

return redis.call('ZREM', purgatory, unpack(members))
