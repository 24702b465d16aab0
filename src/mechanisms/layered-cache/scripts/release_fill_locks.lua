-- release_fill_locks: gives locks back whose source could not be read, so that the next asker need not wait for their end.
-- Promise: only locks taken with this token are touched.
-- KEYS   1 ...locks   pairs of string lock, string owner; one pair an id
-- ARGV   1 token      what the locks were taken with
-- Reply  how many were released
-- Crash  before: the locks expire by themselves. After: released; a repeat answers 0.
local locks, token = KEYS, ARGV[1]

local released = 0
for at = 1, #locks, 2 do
  local lock, owner = locks[at], locks[at + 1]
  if redis.call('GET', owner) == token then
    redis.call('DEL', lock, owner)
    released = released + 1
  end
end
return released
