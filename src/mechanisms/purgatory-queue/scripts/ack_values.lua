-- ack_values: removes items by value, for batches that finish out of order.
-- Promise: each value removes one equal item at most; an item that is gone already is passed over.
-- KEYS   1 purgatory  list; what the one worker holds now
-- ARGV   1 ...items   the items, byte for byte
-- Reply  1 or 0 for each item: removed, or not there
-- Crash  before: the next run repeats these items. After: they are done; repeating answers 0.
local purgatory = KEYS[1]
local items = { unpack(ARGV) }

local removed = {}
for index, item in ipairs(items) do
  removed[index] = redis.call('LREM', purgatory, 1, item)
end
return removed
