-- quarantine: a held entry that is not a job is set aside for an operator.
-- Promise: only an entry that is still held under its number moves; nothing is dropped.
-- KEYS   1 running     hash; take number -> entry
--        2 quarantine  list; unreadable entries, newest on the left
-- ARGV   1 ...items    take number and quarantine JSON, two per item
-- Reply  how many moved
-- Crash  before: still held. After: set aside.
local running, quarantine, items = KEYS[1], KEYS[2], ARGV

local moved = 0
for i = 1, #items, 2 do
  if redis.call('HDEL', running, items[i]) == 1 then
    redis.call('LPUSH', quarantine, items[i + 1])
    moved = moved + 1
  end
end
return moved
