-- commit_send: writes down what became of mails that were handed to the provider, or not even that.
-- Promise: a mail leaves the purgatory together with what follows from it: waiting for its receipt, or its failure job;
--          what is no longer in the purgatory was settled before and changes nothing.
-- KEYS   1 purgatory    list; the mails that the send job holds
--        2 pending      zset of message ids by when they were taken; the hash of an id is {pending}:{id}
--        3 event        list of news, for mails whose acceptance is the last that is heard
--        4 jobs         list; where failure jobs are queued
--        5 lock         the send job's lock
--        6 ...counters  the counters of the blocks
-- ARGV   1 lock_id      the id that the send job believes to hold
--        2 head         integer; how many mails there are, if they are exactly those at the head of the purgatory and can be
--                       cut off together; 0 = each is looked for, with or without the lock
--        3 last         the last mail of that head, byte for byte
--        4 kinds        integer; how many different blocks of counts there are
--        5 size         integer; how many fields the hash of a mail has
--        6 ...items     the blocks, the names of the fields, then in turn: the mail byte for byte (nothing where there is a
--                       head), which block, and either `accept`, the values of the fields and news (may be empty), or
--                       `fail` and the failure job
-- Reply  per item 1 applied; 0 no longer there; -2 another mail awaits its receipt under this id, nothing changed.
--        { -1 }: the lock is lost, the head is another or has such an id, and nothing changed
-- Crash  before: the next run finds the mail in the purgatory and sends it again. After: it is settled.
local purgatory, pending, event, jobs, lock, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS
local lock_id, head, last = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local kinds, size, items, first_block = tonumber(ARGV[4]), tonumber(ARGV[5]), ARGV, 6
local most_leaving = math.ceil(#items / (size + 4))

-- include: ../../../mechanisms/lock/scripts/fence.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/leave.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/head.fragment.lua

if is_other_head() then return { -1 } end

-- Most mails of a call count the same, so each block is applied once, for all mails that it counts.
local blocks, times, at = {}, {}, first_block
for kind = 1, kinds do
  blocks[kind], times[kind] = at, 0
  at = skip_tally(items, at)
end
-- Field and value in turn; each mail puts its own values in.
local hash, place = {}, {}
for field = 1, size do
  hash[field * 2 - 1], place[items[at]] = items[at], field - 1
  at = at + 1
end

-- Where the values of each accepted mail begin and which mail awaits news under its id: nearly always nobody does, which
-- one command tells of all of them.
local first_item, accepted, keys_of, holders = at, {}, {}, {}
while at <= #items do
  if items[at + 2] == 'accept' then
    accepted[#accepted + 1] = at + 3
    keys_of[#keys_of + 1] = pending .. ':' .. items[at + 3 + place.message_id]
    at = at + 4 + size
  else
    at = at + 4
  end
end
if #keys_of > 0 and redis.call('EXISTS', unpack(keys_of)) > 0 then
  for _, key in ipairs(keys_of) do
    holders[key] = redis.call('HGET', key, 'uid') or nil
  end
end
if head > 0 then
  local uids = {}
  for at, key in ipairs(keys_of) do
    local uid = items[accepted[at] + place.uid]
    if (holders[key] or uids[key] or uid) ~= uid then return { -1 } end
    uids[key] = uid
  end
end

local heard, waiting, queued = {}, {}, {}
local function accept(raw, first)
  local uid, id, news = items[first + place.uid], items[first + place.message_id], items[first + size]
  local key = pending .. ':' .. id
  local holder = holders[key]
  if holder and holder ~= uid then return -2 end
  if leave(raw) == 0 then return 0 end
  if holder then redis.call('DEL', key) end
  holders[key] = uid
  for field = 1, size do
    hash[field * 2] = items[first + field - 1]
  end
  redis.call('HSET', key, unpack(hash))
  waiting[#waiting + 1] = items[first + place.send_accepted_at]
  waiting[#waiting + 1] = id
  if news ~= '' then heard[#heard + 1] = news end
  return 1
end

local function fail(raw, job)
  local found = leave(raw)
  if found == 1 then queued[#queued + 1] = job end
  return found
end

local results = {}
at = first_item
while at <= #items do
  local raw, kind, outcome, first, result = items[at], tonumber(items[at + 1]), items[at + 2], at + 3, nil
  if outcome == 'accept' then
    result = accept(raw, first)
    at = first + size + 1
  else
    result = fail(raw, items[first])
    at = first + 1
  end
  if result == 1 then times[kind] = times[kind] + 1 end
  results[#results + 1] = result
end
if #waiting > 0 then redis.call('ZADD', pending, unpack(waiting)) end
if #queued > 0 then redis.call('RPUSH', jobs, unpack(queued)) end
if #heard > 0 then redis.call('RPUSH', event, unpack(heard)) end
cut_left()
for kind = 1, kinds do
  if times[kind] > 0 then tally(counters, 5, items, blocks[kind], times[kind]) end
end
return results
