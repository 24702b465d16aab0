-- fence (fragment): whether a lock still holds our id, whatever kind it is: a token is its value, an owner's id is
-- inside its JSON. A worker that was stopped for longer than its lease finds out here that others went on without it.
local function holds_lock(key, id)
  local value = redis.call('GET', key)
  if not value then
    return false
  end
  if value == id then
    return true
  end
  local decoded, owner = pcall(cjson.decode, value)
  return decoded and type(owner) == 'table' and owner.lock_id == id
end
