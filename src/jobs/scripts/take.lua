-- take: moves waiting jobs into one worker's hands, each under a number that is its claim.
-- Promise: an entry is in a queue or held by exactly one worker; queues are emptied in the given order, each from its head.
-- KEYS   1 worker         hash; exists while the worker is registered
--        2 running        hash; take number -> entry
--        3 ...queues      lists to take from, the preferred first
-- ARGV   1 first_number   the number of the first entry taken; the worker never uses a number twice
--        2 max_plain      how many entries of any kind it has room for
--        3 max_recurring  how many recurring ones fit beside them
--        4 ...limits      one per queue: the most to take from it
-- Reply  the entries, numbered upwards from first_number; -1 = declared dead, nothing was taken
-- Crash  before: nothing happened. After: held by the worker, which finds it when it reconciles, or the reaper does.
local worker, running, queues = KEYS[1], KEYS[2], { unpack(KEYS, 3) }
local first_number, max_plain, max_recurring = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local limits = { unpack(ARGV, 4) }

if redis.call('EXISTS', worker) == 0 then return -1 end
local taken, held, number = {}, {}, first_number
for q, queue in ipairs(queues) do
  local room = math.min(max_plain + max_recurring, tonumber(limits[q]))
  local heads = room > 0 and redis.call('LRANGE', queue, 0, room - 1) or {}
  local count = 0
  for _, entry in ipairs(heads) do
    if max_recurring > 0 and string.sub(entry, 1, 9) == '{"rjob":"' then
      max_recurring = max_recurring - 1
    elseif max_plain > 0 then
      max_plain = max_plain - 1
    else
      break
    end
    count = count + 1
    taken[#taken + 1] = entry
    held[#held + 1] = string.format('%.0f', number)
    held[#held + 1] = entry
    number = number + 1
  end
  if count > 0 then redis.call('LTRIM', queue, count, -1) end
end
if #held > 0 then redis.call('HSET', running, unpack(held)) end
return taken
