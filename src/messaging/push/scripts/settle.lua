-- settle: what became of notifications that were sent or checked: each leaves the purgatory for its next place, counted.
-- Promise: a notification that is no longer in the purgatory is passed over with all its effects; the types of the places
-- are checked before the first change.
-- KEYS   1 purgatory    list; what the one worker holds now
--        2 cold         zset; tickets that rest
--        3 hot          list; jobs that wait for any worker
--        4 lock         the worker's lock
--        5 ...counters  the counters of all blocks
-- ARGV   1 lock_id      the id that the worker believes to hold
--        2 head         integer; how many items there are, if they are exactly those at the head of the purgatory and can
--                       be cut off together; 0 = each is looked for, with or without the lock
--        3 last         the last entry of that head, byte for byte
--        4 ...groups    in turn: how many items count the same, the block of what each of them counts, then for each item
--                       the entry byte for byte (nothing where there is a head), what it becomes, and its score in the
--                       cold set or nothing where it becomes a job; at most 500 items in all
-- Reply  1 or 0 for each item: settled, or not there; { -1 }: the lock is lost or the head is another, nothing changed
-- Crash  before: the next run handles these again. After: all is done; repeating answers 0, or { -1 }.
local purgatory, cold, hot, lock, counters, groups = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS, ARGV
local lock_id, head, last, first_group = ARGV[1], tonumber(ARGV[2]), ARGV[3], 4
local most_leaving = math.ceil(#groups / 3)

-- include: wrongly_typed.fragment.lua
-- include: ../../../mechanisms/lock/scripts/fence.lua
-- include: ../../../mechanisms/dated-counters/scripts/tally.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/leave.fragment.lua
-- include: ../../../mechanisms/purgatory-queue/scripts/head.fragment.lua

local wrong = wrongly_typed({ [cold] = 'zset', [hot] = 'list' })
if wrong then return redis.error_reply('WRONGTYPE ' .. wrong .. ' has another type than it needs') end

if is_other_head() then return { -1 } end

local settled, tickets, jobs = {}, {}, {}
local at = first_group
while at <= #groups do
  local size, block = tonumber(groups[at]), at + 1
  local first = skip_tally(groups, block)
  local applied = 0
  for item = first, first + 3 * (size - 1), 3 do
    local removed = leave(groups[item])
    if removed == 1 then
      applied = applied + 1
      if groups[item + 2] == '' then
        jobs[#jobs + 1] = groups[item + 1]
      else
        tickets[#tickets + 1] = groups[item + 2]
        tickets[#tickets + 1] = groups[item + 1]
      end
    end
    settled[#settled + 1] = removed
  end
  if applied > 0 then tally(counters, 4, groups, block, applied) end
  at = first + 3 * size
end
cut_left()
if #tickets > 0 then redis.call('ZADD', cold, unpack(tickets)) end
if #jobs > 0 then redis.call('RPUSH', hot, unpack(jobs)) end
return settled
