-- commit_events: works news into what is known of pending messages.
-- Promise: an event takes effect on the state that its reader saw, and once; a message ends together with its callback.
-- KEYS   1 set            zset of sids by due time; the hash of a sid is {set}:{sid}
--        2 quarantine     list of quarantined entries, newest first
--        3 purgatory      list; the events that the reconciliation job holds
--        4 early          zset of events that came before their message, by when to look again
--        5 jobs           list; where callbacks are queued
--        6 ...counters    the counters of the blocks
-- ARGV   1 version_field  hash field that counts changes
--        2 companions     none: empty
--        3 queue          the name of the set as operators know it
--        4 now            unix seconds
--        5 call_id        unique to this call
--        6 kinds          integer; how many different blocks of counts there are
--        7 ...items       the blocks, then in turn, at most one event a message: event byte for byte, `none`, `early`,
--                         `update` or `remove`, sid, expected version or empty when it must not be pending, due time,
--                         which block, number of field arguments, field and value in turn, job to queue or empty
-- Reply  per item 1 applied; 0 no longer there; -1 was broken, is cleared away; -3 changed meanwhile, the event stays
-- Crash  before: the next run finds the event in the purgatory. After: it is worked in.
local set, quarantine, purgatory, early, jobs, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS
local version_field, companions, queue, now, call_id = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local kinds, items = tonumber(ARGV[6]), ARGV
local most_leaving = math.ceil(#items / 8)

-- include: ../../../mechanisms/pending-set/scripts/health.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/leave.fragment.lua

-- Most events of a call count the same, so each block is applied once, for all that it counts.
local blocks, times, at = {}, {}, 7
for kind = 1, kinds do
  blocks[kind], times[kind] = at, 0
  at = skip_tally(items, at)
end

-- Gathered, and written at the end together: what ends, and callbacks.
local results, queued, ended, ended_keys = {}, {}, {}, {}
while at <= #items do
  local raw, action, sid, expected, due = items[at], items[at + 1], items[at + 2], items[at + 3], items[at + 4]
  local kind, size, first_field = tonumber(items[at + 5]), tonumber(items[at + 6]), at + 7
  local callback = items[first_field + size]
  local key, before = set .. ':' .. sid, healed
  local _, version = pending_score(sid)
  local result
  if healed > before and expected ~= '' then
    result = -1
  elseif (version or '') ~= expected then
    result = -3
  else
    result = leave(raw)
  end
  if result == 1 then
    if action == 'early' then
      redis.call('ZADD', early, due, raw)
    elseif action == 'update' then
      redis.call('HSET', key, unpack(items, first_field, first_field + size - 1))
      redis.call('ZADD', set, 'GT', due, sid)
    elseif action == 'remove' then
      ended[#ended + 1], ended_keys[#ended_keys + 1] = sid, key
    end
    if callback ~= '' then queued[#queued + 1] = callback end
    times[kind] = times[kind] + 1
  end
  results[#results + 1] = result
  at = first_field + size + 1
end
if #ended > 0 then
  redis.call('DEL', unpack(ended_keys))
  redis.call('ZREM', set, unpack(ended))
end
if #queued > 0 then redis.call('RPUSH', jobs, unpack(queued)) end
cut_left()
for kind = 1, kinds do
  if times[kind] > 0 then tally(counters, 5, items, blocks[kind], times[kind]) end
end
return results
