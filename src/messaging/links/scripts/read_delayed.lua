-- read_delayed: clicks that waited, and what each still waits for.
-- Promise: all answers are of one moment.
-- KEYS   1 delayed           zset of clicks that wait; the hash of a click is {delayed}:{uid}
--        2 purgatory         zset of clicks that are being stored
--        3 buffer            zset of codes of waiting links
--        4 links_purgatory   zset of codes that are being stored
-- ARGV   1 ...uids           the clicks
-- Reply  for each click the fields and values of its hash in turn, 1 if its link waits, 1 if its parent waits in the schedule
-- Crash  changes nothing.
local delayed, purgatory, buffer, links_purgatory, uids = KEYS[1], KEYS[2], KEYS[3], KEYS[4], ARGV
local found = {}
for at, uid in ipairs(uids) do
  local flat, hash = redis.call('HGETALL', delayed .. ':' .. uid), {}
  for field = 1, #flat, 2 do hash[flat[field]] = flat[field + 1] end
  local code, parent = hash.link_code or '', hash.parent_uid or ''
  local link_waits = redis.call('ZSCORE', buffer, code) or redis.call('ZSCORE', links_purgatory, code)
  local parent_waits = parent ~= '' and redis.call('ZSCORE', delayed, parent)
    and not redis.call('ZSCORE', purgatory, parent)
  found[at] = { flat, link_waits and 1 or 0, parent_waits and 1 or 0 }
end
return found
