-- reserve: takes the next free slot of a spaced API, unless it lies too far ahead.
-- Promise: two reserved slots are never closer than the later one's interval, whoever asked and however many processes there are.
-- KEYS   1 slot         string; unix time of the last used or reserved slot
-- ARGV   1 now          unix seconds
--        2 interval     seconds between the previous slot and this one
--        3 max_wait     seconds; a slot further ahead is not taken
--        4 longest      seconds; the longest interval that any caller of this API declares
-- Reply  { reserved, slot, healed }; reserved = 0: too far ahead, nothing was taken; healed = 1: the value was no number and counts as absent
-- Crash  before: nothing happened. After: the slot is wasted, callers behind it wait one interval longer.
local slot_key, now, interval, max_wait, longest = KEYS[1], tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])

local held = redis.call('GET', slot_key)
local last = held and tonumber(held)
local healed = (held and not last) and 1 or 0
local slot = now
if last and last + interval > now then slot = last + interval end
local written = string.format('%.6f', slot)
if slot - now > max_wait then return { 0, written, healed } end
redis.call('SET', slot_key, written, 'PX', math.max(1, math.ceil((slot + longest - now) * 1000)))
return { 1, written, healed }
