-- settle_due: ends the alarms of notes that are gone, and sets those of notes that live on to their new time.
-- Promise: only an alarm that is still due is touched, so one that was set meanwhile is never lost.
-- KEYS   1 alarms    zset; note uid -> when to look at it
-- ARGV   1 now       unix seconds
--        2 ...notes  uid, and the new time or an empty text when the note is gone, two per note
-- Reply  per note, in the order given: 1 = settled, 0 = no longer due and left alone
-- Crash  before: the alarms ring again in the next run. After: nothing is left to do; a repeat finds nothing due.
local alarms, now = KEYS[1], tonumber(ARGV[1])
local notes = { unpack(ARGV, 2) }

local settled = {}
for i = 1, #notes, 2 do
  local uid, later = notes[i], notes[i + 1]
  local due = tonumber(redis.call('ZSCORE', alarms, uid) or 'inf')
  if due > now then
    settled[#settled + 1] = 0
  else
    if later == '' then redis.call('ZREM', alarms, uid) else redis.call('ZADD', alarms, later, uid) end
    settled[#settled + 1] = 1
  end
end
return settled
