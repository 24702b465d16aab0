-- cold_to_hot: tickets that have rested long enough become hot, one stretch of the cold set at a time.
-- Promise: a ticket is in exactly one of the two; none moves before its last rest is over; order is kept.
-- KEYS   1 cold       zset; tickets that rest, scored by when they first came
--        2 hot        list; tickets whose receipt is to be asked for
--        3 lock       the worker's lock
-- ARGV   1 lock_id    the id that the worker believes to hold
--        2 cutoff     unix time; what was queued after it rests on
--        3 latest     unix time; nothing can have been queued after it, so what says so is no reason to wait
--        4 max_items  integer >= 1; members looked at
--        5 score      where the last stretch ended; -inf at first
--        6 skip       how many members of exactly that score were looked at and left
-- Reply  { moved, looked at, next score, next skip }; moved = -10: fenced
-- Crash  before: nothing happened. After: what moved is hot; a new walk finds the rest.
local cold, hot, lock = KEYS[1], KEYS[2], KEYS[3]
local lock_id, cutoff, latest, max_items = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local score, skip = ARGV[5], tonumber(ARGV[6])

-- include: ../../../mechanisms/lock/scripts/fence.lua

-- A ticket that we wrote begins like this, and reading on would cost more than all the rest of the walk. Nearly all rest for
-- the first time, and say so by a plain text before anything nested, which is found sooner than a pattern.
local FIRST_REST = '"retry":0,"last_queued_at":'
local OURS = '^{"aud":"check","uid":"[%w_-]+","attempt_initially_queued_at":[%d.]+,"initially_queued_at":[%d.]+,'
  .. '"retry":%d+,"last_queued_at":([%d.]+),'

local function time_of(member)
  local _, before = string.find(member, FIRST_REST, 1, true)
  local nested = before and string.find(member, '{', 2, true)
  if before and (not nested or nested > before) then
    return tonumber(string.match(member, '^[%d.]+', before + 1))
  end
  local queued_at = string.match(member, OURS)
  if queued_at then return tonumber(queued_at) end
  local readable, ticket = pcall(cjson.decode, member)
  return readable and type(ticket) == 'table' and tonumber(ticket.last_queued_at) or nil
end

if not holds_lock(lock, lock_id) then return { -10, 0, score, skip } end

-- What is no ticket goes along: whoever reads the hot list sets it aside, byte for byte.
local function has_rested(member)
  local queued_at = time_of(member)
  return not queued_at or queued_at <= tonumber(cutoff) or queued_at > latest
end

-- Nearly always all of a stretch have rested and nothing was left behind before it: then no score is needed.
if score == '-inf' and skip == 0 then
  local found = redis.call('ZRANGE', cold, score, cutoff, 'BYSCORE', 'LIMIT', 0, max_items)
  local rested = 0
  while rested < #found and has_rested(found[rested + 1]) do rested = rested + 1 end
  if rested == #found then
    if rested > 0 then
      redis.call('RPUSH', hot, unpack(found))
      redis.call('ZREMRANGEBYRANK', cold, 0, rested - 1)
    end
    return { rested, rested, score, skip }
  end
end

local found = redis.call('ZRANGE', cold, score, cutoff, 'BYSCORE', 'LIMIT', skip, max_items, 'WITHSCORES')
local rested = {}
for at = 1, #found, 2 do
  local member, its_score = found[at], found[at + 1]
  if its_score ~= score then
    score, skip = its_score, 0
  end
  if has_rested(member) then
    rested[#rested + 1] = member
  else
    skip = skip + 1
  end
end
if #rested > 0 then
  redis.call('RPUSH', hot, unpack(rested))
  redis.call('ZREM', cold, unpack(rested))
end
return { #rested, #found / 2, score, skip }
