-- sync_recurring: the schedule becomes that of this version's recurring jobs.
-- Promise: a job known before keeps its due time or an earlier one; one that was being dispatched is due at once; a job that is
--          gone leaves no trace; an unchanged schedule is not touched.
-- KEYS   1 recurring  zset; digest -> due time
--        2 purgatory  set; digests being dispatched
--        3 queued     hash; digest -> time its waiting entry was pushed
--        4 hash       string; digest of the whole set
-- ARGV   1 new_hash
--        2 now        unix time
--        3 ...jobs    digest and due time pairs
-- Reply  1; 0 = unchanged
-- Crash  before: the old schedule. After: the new one.
local recurring, purgatory, queued, hash = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local new_hash, now = ARGV[1], ARGV[2]
local jobs = { unpack(ARGV, 3) }

local empty = redis.call('EXISTS', recurring, purgatory) == 0
if redis.call('GET', hash) == new_hash and not (empty and #jobs > 0) then return 0 end
local schedule, declared = {}, {}
for i = 1, #jobs, 2 do
  local digest, due = jobs[i], jobs[i + 1]
  declared[digest] = true
  local known = redis.call('ZSCORE', recurring, digest)
  if known and tonumber(known) < tonumber(due) then due = known end
  if redis.call('SISMEMBER', purgatory, digest) == 1 then due = now end
  schedule[#schedule + 1] = due
  schedule[#schedule + 1] = digest
end
for _, digest in ipairs(redis.call('HKEYS', queued)) do
  if not declared[digest] then redis.call('HDEL', queued, digest) end
end
redis.call('DEL', recurring, purgatory)
if #schedule > 0 then
  redis.call('ZADD', recurring, unpack(schedule))
  redis.call('SET', hash, new_hash)
else
  redis.call('DEL', hash)
end
return 1
