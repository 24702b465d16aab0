-- head (fragment): lets items that are exactly those at the head of a purgatory leave it by their number, which costs a
-- fraction of naming each of them. Whatever comes joins behind, so when the last of them stands where it should, all before
-- it are there too; only whoever holds the lock may say so.
-- Uses the locals purgatory, lock, lock_id, head and last of the including script: how many items there are, and the last
-- of them byte for byte; a head of 0 has each item looked for, with or without the lock. Include it after fence and leave,
-- whose leave() and cut_left() then do the right thing for both. Before anything else changes the script asks is_other_head().
local function is_other_head()
  return head > 0 and not (holds_lock(lock, lock_id) and redis.call('LINDEX', purgatory, head - 1) == last)
end

if head > 0 then
  leave = function() return 1 end
  cut_left = function() redis.call('LTRIM', purgatory, head, -1) end
end
