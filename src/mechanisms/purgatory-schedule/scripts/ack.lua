-- ack: removes members from the purgatory, because they are done.
-- Promise: only the named members go; one that is gone already is passed over.
-- KEYS   1 purgatory   zset; what the one worker holds now
-- ARGV   1 ...members  the members, byte for byte
-- Reply  how many were removed
-- Crash  before: the next run repeats them. After: they are done; repeating answers 0.
local purgatory = KEYS[1]
local members = { unpack(ARGV) }

return redis.call('ZREM', purgatory, unpack(members))
