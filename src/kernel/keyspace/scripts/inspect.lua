-- inspect: says of each scanned name what the key is, with a bounded sample of its value.
-- Promise: writes nothing; a name whose key is gone answers type none; a large key costs no more than its sample.
-- KEYS   none: the names come from SCAN on this very server, so they are names of the server, of any family
-- ARGV   1 max_elements   integer >= 2; collections that are longer are sampled from both ends or at random
--        2 max_fields     integer >= 2; hashes that are longer are sampled
--        3 max_bytes      integer; longer strings are not read
--        4 usage_samples  integer; elements that MEMORY USAGE looks at, 0 = all
--        5 reply_bytes    integer; once the samples are larger than this, the remaining names are left for another call
--        6 ...names       at most 1000
-- Reply  one { type, pttl, bytes, length, sample } per name, in order, possibly fewer; sample = false: not read;
--        length = -1: the sample is everything.
--        A string has one element, a hash alternates field and value, a stream has one such list per entry.
-- Crash  harmless at any point: it only reads.
local max_elements, max_fields, max_bytes = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local usage_samples, reply_bytes, names = ARGV[4], tonumber(ARGV[5]), { unpack(ARGV, 6) }
local half = math.floor(max_elements / 2)
-- Most keys are small, and for those it is cheaper to read everything than to ask for the length first.
local SMALL = 1024
local call = redis.call

local function joined(first, last)
  for _, element in ipairs(last) do first[#first + 1] = element end
  return first
end

local function entry_fields(entries)
  local found = {}
  for index, entry in ipairs(entries) do found[index] = entry[2] end
  return found
end

local function reader(limit, count, whole, part)
  return function(name, bytes)
    if bytes <= SMALL then return -1, whole(name) end
    local length = call(count, name)
    if length <= limit then return length, whole(name) end
    return length, part(name)
  end
end

local read = {
  string = reader(max_bytes, 'STRLEN', function(name)
    return { call('GET', name) }
  end, function() return false end),
  list = reader(max_elements, 'LLEN', function(name)
    return call('LRANGE', name, 0, -1)
  end, function(name)
    return joined(call('LRANGE', name, 0, half - 1), call('LRANGE', name, -half, -1))
  end),
  set = reader(max_elements, 'SCARD', function(name)
    return call('SMEMBERS', name)
  end, function(name)
    return call('SRANDMEMBER', name, max_elements)
  end),
  zset = reader(max_elements, 'ZCARD', function(name)
    return call('ZRANGE', name, 0, -1)
  end, function(name)
    return joined(call('ZRANGE', name, 0, half - 1), call('ZRANGE', name, -half, -1))
  end),
  hash = reader(max_fields, 'HLEN', function(name)
    return call('HGETALL', name)
  end, function(name)
    return call('HRANDFIELD', name, max_elements, 'WITHVALUES')
  end),
  stream = reader(max_elements, 'XLEN', function(name)
    return entry_fields(call('XRANGE', name, '-', '+'))
  end, function(name)
    local first = entry_fields(call('XRANGE', name, '-', '+', 'COUNT', half))
    return joined(first, entry_fields(call('XREVRANGE', name, '+', '-', 'COUNT', half)))
  end),
}

local function size_of(sample)
  local size = 0
  for _, element in ipairs(sample) do
    size = size + (type(element) == 'table' and size_of(element) or #element)
  end
  return size
end

local reply, replied = {}, 0
for index, name in ipairs(names) do
  local kind = call('TYPE', name).ok
  local bytes = kind ~= 'none' and call('MEMORY', 'USAGE', name, 'SAMPLES', usage_samples)
  if not bytes then
    reply[index] = { 'none', -2, 0, 0, false }
  else
    local length, sample = 0, false
    if read[kind] then length, sample = read[kind](name, bytes) end
    reply[index] = { kind, call('PTTL', name), bytes, length, sample }
    if sample then replied = replied + size_of(sample) end
    if replied > reply_bytes then break end
  end
end
return reply
