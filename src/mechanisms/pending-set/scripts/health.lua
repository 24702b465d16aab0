-- health (fragment): a member is pending when it is in the set and its hash is there with its version; anything between
-- that and absent is removed on both sides and counted, and a hash that still says something goes to the quarantine.
-- Uses the locals set, quarantine, version_field, companions, queue, now and call_id of the including script.
local healed = 0
local suffixes = {}
for suffix in string.gmatch(companions, '[^,]+') do
  suffixes[#suffixes + 1] = suffix
end

local function forget(member)
  local key = set .. ':' .. member
  redis.call('ZREM', set, member)
  redis.call('DEL', key)
  for _, suffix in ipairs(suffixes) do
    redis.call('DEL', key .. ':' .. suffix)
  end
end

local function set_aside(member, reason)
  local flat = redis.call('HGETALL', set .. ':' .. member)
  local hash = {}
  for at = 1, #flat, 2 do
    hash[flat[at]] = flat[at + 1]
  end
  redis.call('LPUSH', quarantine, '{"id":' .. cjson.encode(call_id .. '_' .. healed)
    .. ',"queue":' .. cjson.encode(queue)
    .. ',"raw":' .. cjson.encode(cjson.encode(hash))
    .. ',"reason":' .. cjson.encode(reason .. ' (member ' .. member .. ')')
    .. ',"quarantined_at":' .. now .. '}')
end

-- The member's score when it is pending, and its version where there are versions; else false. Heals on the way.
local function pending_score(member)
  local key = set .. ':' .. member
  local score = redis.call('ZSCORE', set, member)
  local version = score and version_field ~= '' and redis.pcall('HGET', key, version_field)
  if type(version) == 'string' then
    return score, version
  end
  local kind = redis.call('TYPE', key).ok
  if not score and kind == 'none' then
    return false
  end
  local versioned = kind == 'hash' and (version_field == '' or redis.call('HEXISTS', key, version_field) == 1)
  if score and versioned then
    return score
  end
  healed = healed + 1
  if kind == 'hash' then
    set_aside(member, versioned and 'the set does not have the member' or ('field ' .. version_field .. ' is missing'))
  end
  forget(member)
  return false
end

-- What a reader gets of a pending member: member, score, the hash, each companion's members.
local function snapshot(member)
  local key = set .. ':' .. member
  local result = { member, redis.call('ZSCORE', set, member), redis.call('HGETALL', key) }
  for _, suffix in ipairs(suffixes) do
    result[#result + 1] = redis.call('SMEMBERS', key .. ':' .. suffix)
  end
  return result
end
