-- inspect: says of each scanned name what the key is, with a bounded sample of its value.
-- Promise: writes nothing; a name whose key is gone answers type none; a large key costs no more than its sample.
-- KEYS   none: the names come from SCAN on this very server, so they are names of the server, of any family
-- ARGV   1 max_elements   integer >= 2; collections that are longer are sampled from both ends or at random
--        2 max_fields     integer >= 2; hashes that are longer are sampled
--        3 max_bytes      integer; longer strings are not read
--        4 usage_samples  integer; elements that MEMORY USAGE looks at, 0 = all
--        5 reply_bytes    integer; once the samples are larger than this, the remaining names are left for another call
--        6 ...names       at most 1000
-- Reply  one { type, pttl, bytes, length, sample } per name, in order, possibly fewer; sample = false: not read.
--        A string has one element, a hash alternates field and value, a stream has one such list per entry.
-- Crash  harmless at any point: it only reads.
local max_elements, max_fields, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local usage_samples, reply_bytes, names = ARGV[4], tonumber(ARGV[5]), { unpack(ARGV, 6) }
local half = math.floor(max_elements / 2)

local function joined(first, last)
  for _, element in ipairs(last) do first[#first + 1] = element end
  return first
end

local function entry_fields(entries)
  local found = {}
  for index, entry in ipairs(entries) do found[index] = entry[2] end
  return found
end

local read = {
  string = function(name)
    local length = redis.call('STRLEN', name)
    return length, length <= max_bytes and { redis.call('GET', name) }
  end,
  list = function(name)
    local length = redis.call('LLEN', name)
    if length <= max_elements then return length, redis.call('LRANGE', name, 0, -1) end
    return length, joined(redis.call('LRANGE', name, 0, half - 1), redis.call('LRANGE', name, -half, -1))
  end,
  set = function(name)
    local length = redis.call('SCARD', name)
    if length <= max_elements then return length, redis.call('SMEMBERS', name) end
    return length, redis.call('SRANDMEMBER', name, max_elements)
  end,
  zset = function(name)
    local length = redis.call('ZCARD', name)
    if length <= max_elements then return length, redis.call('ZRANGE', name, 0, -1) end
    return length, joined(redis.call('ZRANGE', name, 0, half - 1), redis.call('ZRANGE', name, -half, -1))
  end,
  hash = function(name)
    local length = redis.call('HLEN', name)
    if length <= max_fields then return length, redis.call('HGETALL', name) end
    return length, redis.call('HRANDFIELD', name, max_elements, 'WITHVALUES')
  end,
  stream = function(name)
    local length = redis.call('XLEN', name)
    if length <= max_elements then return length, entry_fields(redis.call('XRANGE', name, '-', '+')) end
    local first = entry_fields(redis.call('XRANGE', name, '-', '+', 'COUNT', half))
    return length, joined(first, entry_fields(redis.call('XREVRANGE', name, '+', '-', 'COUNT', half)))
  end,
}

local function size_of(sample)
  local size = 0
  for _, element in ipairs(sample or {}) do
    size = size + (type(element) == 'table' and size_of(element) or #element)
  end
  return size
end

local reply, replied = {}, 0
for index, name in ipairs(names) do
  local kind = redis.call('TYPE', name).ok
  if kind == 'none' then
    reply[index] = { kind, -2, 0, 0, false }
  else
    local length, sample = 0, false
    if read[kind] then length, sample = read[kind](name) end
    local bytes = redis.call('MEMORY', 'USAGE', name, 'SAMPLES', usage_samples) or 0
    reply[index] = { kind, redis.call('PTTL', name), bytes, length, sample }
    replied = replied + size_of(sample)
    if replied > reply_bytes then break end
  end
end
return reply
