-- own_marker (fragment): whether the marker of a recurring job speaks of this very entry, and not of a newer one.
-- An entry and its marker are pushed in one step and carry the same time, so equal times mean that the entry never started.
local function own_marker(queued, digest, pushed_at)
  local marker = redis.call('HGET', queued, digest)
  return marker and tonumber(marker) == tonumber(pushed_at)
end
