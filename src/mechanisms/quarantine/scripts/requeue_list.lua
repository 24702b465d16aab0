-- requeue_list: puts a quarantined entry back at the end of its queue.
-- Promise: the item is in exactly one of quarantine and queue; two operators cannot put it back twice.
-- KEYS   1 quarantine  list of quarantined entries
--        2 queue       list; the item is appended on the right
-- ARGV   1 entry       the quarantined entry, byte for byte
--        2 item        what to append: the raw entry, or its correction
-- Reply  1 moved; 0 the entry is gone
-- Crash  before: nothing happened. After: it is in the queue; a repeat answers 0.
local quarantine, queue, entry, item = KEYS[1], KEYS[2], ARGV[1], ARGV[2]

if redis.call('LREM', quarantine, 1, entry) == 0 then
  return 0
end
redis.call('RPUSH', queue, item)
return 1
