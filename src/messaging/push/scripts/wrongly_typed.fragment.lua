-- wrongly_typed (fragment): the check of types that comes before any change, because a script that fails halfway is not
-- undone.
local function wrongly_typed(expected)
  for key, wanted in pairs(expected) do
    local present = redis.call('TYPE', key).ok
    if present ~= 'none' and present ~= wanted then return key end
  end
end
