-- forget (fragment): takes a link out of the buffer with its clicks and their index. Uses the local buffer.
local function clicks_of(code)
  return redis.call('LRANGE', buffer .. ':clicks:' .. code, 0, -1)
end

local function forget(code)
  for _, raw in ipairs(clicks_of(code)) do
    local readable, click = pcall(cjson.decode, raw)
    if readable and type(click) == 'table' and type(click.uid) == 'string' then
      redis.call('DEL', buffer .. ':on_clicks_by_uid:' .. click.uid)
    end
  end
  redis.call('ZREM', buffer, code)
  redis.call('DEL', buffer .. ':' .. code, buffer .. ':clicks:' .. code)
end
