-- commit_send: writes down what became of texts that were handed to the provider.
-- Promise: a text leaves the purgatory together with what follows from it: a pending message, or its callback; what is
--          no longer in the purgatory was settled before and changes nothing.
-- KEYS   1 purgatory      list; the texts that the send job holds
--        2 pending        zset of sids by due time; the hash of a sid is {pending}:{sid}
--        3 jobs           list; where callbacks are queued
--        4 recent         zset of sids whose text is known, by when that was written down
--        5 ...counters    the counters of the blocks
-- ARGV   1 now            unix seconds
--        2 forget_before  unix seconds; older sids are in no doubt any more
--        3 kinds          integer; how many different blocks of counts there are
--        4 ...items       the blocks, then in turn: the text byte for byte, `pending` or `job`, sid or empty, due time,
--                         which block, number of field arguments, field and value in turn, callback
-- Reply  per item 1 applied; 0 no longer there; -2 the sid is pending already, nothing changed
-- Crash  before: the next run finds the text in the purgatory and looks it up. After: it is settled.
local purgatory, pending, jobs, recent, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS
local now, forget_before, kinds, items = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV
local most_leaving = math.ceil(#items / 7)

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/leave.fragment.lua

redis.call('ZREMRANGEBYSCORE', recent, '-inf', '(' .. forget_before)

-- Most texts of a call count the same, so each block is applied once, for all texts that it counts.
local blocks, times, at = {}, {}, 4
for kind = 1, kinds do
  blocks[kind], times[kind] = at, 0
  at = skip_tally(items, at)
end

-- Gathered, and written at the end together: the sids that are known now, what begins to wait, and callbacks.
local results, known, waiting, waiting_keys, first_fields, sizes, queued = {}, {}, {}, {}, {}, {}, {}
local is_waiting = {}
while at <= #items do
  local raw, outcome, sid, due = items[at], items[at + 1], items[at + 2], items[at + 3]
  local kind, size, first_field = tonumber(items[at + 4]), tonumber(items[at + 5]), at + 6
  local callback = items[first_field + size]
  local result
  if outcome == 'pending' and (is_waiting[sid] or redis.call('ZSCORE', pending, sid)) then
    cut_left()
    result = redis.call('LPOS', purgatory, raw) and -2 or 0
  else
    result = leave(raw)
  end
  if result == 1 then
    if sid ~= '' then
      known[#known + 1] = now
      known[#known + 1] = sid
    end
    if outcome == 'pending' then
      is_waiting[sid] = true
      waiting[#waiting + 1] = due
      waiting[#waiting + 1] = sid
      waiting_keys[#waiting_keys + 1] = pending .. ':' .. sid
      first_fields[#first_fields + 1], sizes[#sizes + 1] = first_field, size
    else
      queued[#queued + 1] = callback
    end
    times[kind] = times[kind] + 1
  end
  results[#results + 1] = result
  at = first_field + size + 1
end
if #known > 0 then redis.call('ZADD', recent, unpack(known)) end
if #waiting > 0 then
  redis.call('DEL', unpack(waiting_keys))
  for at, key in ipairs(waiting_keys) do
    redis.call('HSET', key, unpack(items, first_fields[at], first_fields[at] + sizes[at] - 1))
  end
  redis.call('ZADD', pending, unpack(waiting))
end
if #queued > 0 then redis.call('RPUSH', jobs, unpack(queued)) end
cut_left()
for kind = 1, kinds do
  if times[kind] > 0 then tally(counters, 4, items, blocks[kind], times[kind]) end
end
return results
