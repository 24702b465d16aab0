-- dispatch: touches leave the purgatory together with everything that follows from them.
-- Promise: the touches that were read go, and no others, in the same step that makes their messages, callbacks and rows.
-- KEYS   1 purgatory      list; the touches that the send job holds
--        2 pending        zset of touches that have not ended; the hash of a touch is {pending}:{uid}
--        3 to_log         list of rows that wait to be written
--        4 jobs           list; where callbacks are queued
--        5 to_tell        hash of waiting touches whose failure is to be told
--        6 sent_on        hash of touches that each person got today
--        7 push           list of groups for the room of push
--        8 sms            list of groups for the room of sms
--        9 email          list of groups for the room of email
--        10 ...counters   the counters of the block
-- ARGV   1 now            unix seconds; when they were found to be reachable
--        2 touches        integer; how many touches follow
--        3 waiting        integer; how many of them wait for an end
--        4 rows           integer; how many rows
--        5 callbacks      integer; how many callbacks
--        6 told           integer; how many fields and values of to_tell
--        7 sent           integer; how many fields of sent_on
--        8 kept_ms        milliseconds that sent_on is kept
--        9 groups         integers joined by spaces: how many groups for push, sms and email
--        10 ...items      the touches byte for byte; for each that waits its uid, success callback or nothing, failure callback
--                         or nothing, how many messages, their uids; the rows; the callbacks; the fields and values of to_tell
--                         in turn; the fields of sent_on, each once for each touch; the groups; one block of counts
-- Reply  how many touches are left in the purgatory; -1 when it holds others than those that were read
-- Crash  before: the next run takes them up. After: all of it has happened.
local purgatory, pending, to_log, jobs, to_tell, counters = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5], KEYS
local sent_on, channels = KEYS[6], { KEYS[7], KEYS[8], KEYS[9] }
local now, touches, waiting = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local rows, callbacks, told, sent = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6]), tonumber(ARGV[7])
local kept_ms, groups, items = ARGV[8], ARGV[9], ARGV

-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua

local held, at = redis.call('LRANGE', purgatory, 0, touches - 1), 10
if #held ~= touches then return -1 end
for index = 1, touches do
  if held[index] ~= items[at] then return -1 end
  at = at + 1
end

-- A call takes some thousand arguments at most.
local function append(key, count)
  local last = at + count - 1
  while at <= last do
    local upto = math.min(last, at + 999)
    redis.call('RPUSH', key, unpack(items, at, upto))
    at = upto + 1
  end
end

redis.call('LTRIM', purgatory, touches, -1)
for _ = 1, waiting do
  local uid, success, failure, messages = items[at], items[at + 1], items[at + 2], tonumber(items[at + 3])
  local key = pending .. ':' .. uid
  redis.call('ZADD', pending, now, uid)
  if success ~= '' then redis.call('HSET', key, 'success_callback', success) end
  if failure ~= '' then redis.call('HSET', key, 'failure_callback', failure) end
  redis.call('SADD', key .. ':remaining', unpack(items, at + 4, at + 3 + messages))
  at = at + 4 + messages
end
append(to_log, rows)
append(jobs, callbacks)
if told > 0 then redis.call('HSET', to_tell, unpack(items, at, at + told - 1)) end
at = at + told
for index = at, at + sent - 1 do redis.call('HINCRBY', sent_on, items[index], 1) end
if sent > 0 then redis.call('PEXPIRE', sent_on, kept_ms) end
at = at + sent
local channel = 1
for count in string.gmatch(groups, '%d+') do
  append(channels[channel], tonumber(count))
  channel = channel + 1
end
tally(counters, 9, items, at)
return redis.call('LLEN', purgatory)
