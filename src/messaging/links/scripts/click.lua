-- click: takes uses of links: whether each is let in, kept, has to wait, or is for SQL to decide.
-- Promise: a use is kept in one place; repeating one changes nothing; who signed in after a click is kept once.
-- KEYS   1 buffer       zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 purgatory    zset of codes that are being stored
--        3 delayed      zset of clicks that wait, by when to store them; the hash of a click is {delayed}:{uid}
--        4 signed_out   string; uses by people who are not signed in
--        5 warning      string; how often people had reason to be warned
--        6 earliest     string; the earliest day that is counted
--        7 some_limit   string; uses of the code `-`; that of any code ends in it instead
--        8 some_robots  hash; what is known of the robots that used the code `-`; that of any code ends in it instead
--        9 ...days      hashes of the open days, the newest first
-- ARGV   1 limit        integer; the use by people who are not signed in from which codes that nobody knows are dropped
--        2 windows      milliseconds: of a code, of those who are not signed in, of a warning, of robots; joined by spaces
--        3 delayed_due  unix time from which a click that waits is stored
--        4 uses         JSON list; a list for each use: its kind (`on_click`, `post_login`, `robot`, `check` or `look`), code,
--                       uid, time as text, whether the limits hold for it; then, each a text or false, the page that this
--                       process knows the code by, uid of the visitor, sub of the user, uid of the parent, rule that knew a robot
--        5 ...items     for each day its date and first instant
-- Reply  JSON list; of each use its outcome, whether people are to be warned, and of a link that waits here its page, what the page
--        is told, its preview, what that is told
-- Crash  before: nothing is kept and nobody is answered. After: repeating it is seen by the uid of the click.
local buffer, purgatory, delayed, signed_out, warning = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local earliest, code_limits, robots = KEYS[6], string.sub(KEYS[7], 1, -2), string.sub(KEYS[8], 1, -2)
local limit, window_list, delayed_due = tonumber(ARGV[1]), ARGV[2], ARGV[3]
local uses, items = cjson.decode(ARGV[4]), ARGV
local day_keys, first_day, windows = { unpack(KEYS, 9) }, 5, {}
for window in string.gmatch(window_list, '%d+') do windows[#windows + 1] = window end

-- include: counts.fragment.lua

local function raise(key, window, by)
  local value = redis.call('INCRBY', key, by or 1)
  redis.call('PEXPIRE', key, window, 'NX')
  return value
end

-- Most codes are used once in their window: that takes one command.
local function is_first_of_code(code)
  local key = code_limits .. code
  if redis.call('SET', key, '1', 'PX', windows[1], 'NX') then return true end
  return raise(key, windows[1]) == 1
end

-- Keeps a click until its link, or its parent, is stored.
local function wait(use)
  redis.call('ZADD', delayed, delayed_due, use.uid)
  redis.call('HSET', delayed .. ':' .. use.uid, 'uid', use.uid, 'link_code', use.code, 'track_type', use.kind,
    'parent_uid', use.parent or '', 'user_sub', use.user or '', 'visitor_uid', use.visitor or '', 'clicked_at', use.time)
  if use.parent then redis.call('SET', delayed .. ':childof:' .. use.parent, use.uid) end
  return 'delayed'
end

-- The time is written as it came: a number that was read here would be written differently.
local function keep(use)
  local raw = { '{"uid":"', use.uid, '","clicked_at":', use.time, ',"track_type":"', use.kind, '"' }
  local function add(name, value)
    if value then raw[#raw + 1] = ',"' .. name .. '":' .. cjson.encode(value) end
  end
  add('visitor_uid', use.visitor)
  add('user_sub', use.user)
  add('parent_uid', use.parent)
  redis.call('RPUSH', buffer .. ':clicks:' .. use.code, table.concat(raw) .. '}')
  return 'buffered'
end

-- Only what was noted while Redis was away comes again; it is not limited.
local function is_known(use)
  return not use.limited and redis.call('EXISTS', buffer .. ':on_clicks_by_uid:' .. use.uid, delayed .. ':' .. use.uid) > 0
end

local function on_click(use)
  if use.waiting and not use.storing then
    redis.call('HSET', buffer .. ':on_clicks_by_uid:' .. use.uid, 'code', use.code, 'has_child', '0')
    return keep(use)
  end
  return use.waiting and wait(use) or 'go_sql'
end

local function post_login(use)
  local index = buffer .. ':on_clicks_by_uid:' .. use.parent
  if redis.call('EXISTS', delayed .. ':childof:' .. use.parent) == 1 then return 'parent_has_child' end
  local found = redis.call('HMGET', index, 'code', 'has_child')
  local buffered_parent = found[1] == use.code
  if buffered_parent and found[2] == '1' then return 'parent_has_child' end
  if use.waiting and buffered_parent then
    redis.call('HSET', index, 'has_child', '1')
    return use.storing and wait(use) or keep(use)
  end
  local parent = redis.call('HMGET', delayed .. ':' .. use.parent, 'track_type', 'link_code')
  if parent[1] == 'on_click' and parent[2] == use.code then return wait(use) end
  return use.waiting and 'parent_not_found' or 'go_sql'
end

local REFUSALS = { too_soon = true, parent_has_child = true, parent_not_found = true }

-- A use whose link is not here is counted by whoever finds it in SQL, unless it waits here.
local function count_use(use, outcome)
  local page = use.link[1] or use.page or 'unknown'
  if REFUSALS[outcome] and use.waiting then
    count(TODAY, 'click_attempts')
    count(TODAY, 'clicks_failed', use.kind .. ':' .. page .. ':buffer:' .. outcome)
  elseif outcome == 'buffered' or outcome == 'delayed' then
    local day = use.waiting and day_of(use.link[5]) or TODAY
    local who = 'vis=' .. (use.visitor and 'True' or 'False') .. ':user=' .. (use.user and 'True' or 'False')
    count(day, 'click_attempts')
    count(day, 'clicks_' .. outcome, use.kind .. ':' .. page .. ':' .. who)
  end
end

-- What was used before this call, and in it; written once at its end.
local used_before, used_here = nil, 0

-- Whether a use of a code that nobody knows is one too many; and whether to tell people.
local function is_dropped(use)
  if use.user or use.kind == 'post_login' then return false end
  used_before = used_before or tonumber(redis.call('GET', signed_out) or 0)
  if use.kind ~= 'look' then used_here = used_here + 1 end
  if used_before + used_here < limit or use.waiting or use.page then return false end
  return true, use.kind ~= 'look' and raise(warning, windows[3]) == 1
end

local function take(use)
  if use.limited then
    local dropped, warn = is_dropped(use)
    if dropped then return 'dropped', warn end
  end
  if use.kind == 'robot' then
    if use.waiting or use.page then
      redis.call('HINCRBY', robots .. use.code, use.rule, 1)
      redis.call('PEXPIRE', robots .. use.code, windows[4])
    end
    count(TODAY, 'robots', use.rule)
    return 'untracked'
  end
  if use.kind == 'look' or use.kind == 'check' then return 'untracked' end
  if is_known(use) then return 'repeated' end
  local outcome
  if use.kind == 'post_login' then
    outcome = post_login(use)
  elseif use.limited and not is_first_of_code(use.code) then
    outcome = 'too_soon'
  else
    outcome = on_click(use)
  end
  count_use(use, outcome)
  return outcome
end

local is_storing = redis.call('EXISTS', purgatory) == 1
local replies = {}
for at, told in ipairs(uses) do
  local use = {
    kind = told[1], code = told[2], uid = told[3], time = told[4], limited = told[5], page = told[6], visitor = told[7],
    user = told[8], parent = told[9], rule = told[10] or 'unknown',
  }
  use.link = redis.call('HMGET', buffer .. ':' .. use.code, 'page_identifier', 'page_extra', 'preview_identifier',
    'preview_extra', 'created_at')
  use.waiting = use.link[1] and true or false
  use.storing = use.waiting and is_storing and redis.call('ZSCORE', purgatory, use.code) and true or false
  local outcome, warn = take(use)
  if use.waiting then
    local page, extra, preview, preview_extra = unpack(use.link)
    replies[at] = { outcome, warn or false, page, extra or '', preview or '', preview_extra or '' }
  else
    replies[at] = { outcome, warn or false }
  end
end
if used_here > 0 then raise(signed_out, windows[2], used_here) end
store_counts()
return cjson.encode(replies)
