-- click: takes uses of links: whether each is let in, kept, has to wait, or is for SQL to decide.
-- Promise: a use is kept in one place; repeating one changes nothing; who signed in after a click is kept once.
-- KEYS   1 buffer       zset of codes by the time they were made; the hash of a code is {buffer}:{code}
--        2 purgatory    zset of codes that are being stored
--        3 delayed      zset of clicks that wait, by when to store them; the hash of a click is {delayed}:{uid}
--        4 signed_out   string; uses by people who are not signed in
--        5 warning      string; how often people had reason to be warned
--        6 earliest     string; the earliest day that is counted
--        7 ...names     hashes of the open days, the newest first; then two for each use: the counter of its code, and what is
--                       known of the robots that used it
-- ARGV   1 days         integer; how many days there are
--        2 limit        integer; the use by people who are not signed in from which codes that nobody knows are dropped
--        3 windows      milliseconds: of a code, of those who are not signed in, of a warning, of robots; joined by spaces
--        4 delayed_due  unix time from which a click that waits is stored
--        5 ...items     for each day its date and first instant; then 12 for each use: `on_click`, `post_login`, `robot`, `check`
--                       or `look`, code, 1 if signed in, 1 if this process knows the code, 1 if the limits hold for it, uid, time,
--                       uid of the parent, uid of the visitor, sub of the user, the click as JSON or for a robot its rule, the
--                       page that the process knows or nothing
-- Reply  for each use its outcome, 1 if people are to be warned, and of a link that waits here its page, what the page is told,
--        its preview, what that is told
-- Crash  before: nothing is kept and nobody is answered. After: repeating it is seen by the uid of the click.
local buffer, purgatory, delayed = KEYS[1], KEYS[2], KEYS[3]
local signed_out, warning, earliest, names = KEYS[4], KEYS[5], KEYS[6], KEYS
local days, limit, window_list, delayed_due, items = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3], ARGV[4], ARGV
local day_keys, first_day, windows = { unpack(names, 7, 6 + days) }, 5, {}
for window in string.gmatch(window_list, '%d+') do windows[#windows + 1] = window end

-- include: counts.fragment.lua

local function raise(key, window)
  local value = redis.call('INCR', key)
  redis.call('PEXPIRE', key, window, 'NX')
  return value
end

-- Keeps a click until its link, or its parent, is stored.
local function wait(use)
  redis.call('ZADD', delayed, delayed_due, use.uid)
  redis.call('HSET', delayed .. ':' .. use.uid, 'uid', use.uid, 'link_code', use.code, 'track_type', use.kind,
    'parent_uid', use.parent, 'user_sub', use.user, 'visitor_uid', use.visitor, 'clicked_at', use.time)
  if use.parent ~= '' then redis.call('SET', delayed .. ':childof:' .. use.parent, use.uid) end
  return 'delayed'
end

local function keep(use)
  redis.call('RPUSH', buffer .. ':clicks:' .. use.code, use.raw)
  return 'buffered'
end

local function is_known(use)
  return redis.call('EXISTS', buffer .. ':on_clicks_by_uid:' .. use.uid, delayed .. ':' .. use.uid) > 0
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
  local page = use.link.page_identifier or (use.page ~= '' and use.page) or 'unknown'
  if REFUSALS[outcome] and use.waiting then
    count(TODAY, 'click_attempts')
    count(TODAY, 'clicks_failed', use.kind .. ':' .. page .. ':buffer:' .. outcome)
  elseif outcome == 'buffered' or outcome == 'delayed' then
    local day = use.waiting and day_of(use.link.created_at) or TODAY
    local who = 'vis=' .. (use.visitor ~= '' and 'True' or 'False') .. ':user=' .. (use.user ~= '' and 'True' or 'False')
    count(day, 'click_attempts')
    count(day, 'clicks_' .. outcome, use.kind .. ':' .. page .. ':' .. who)
  end
end

-- Whether a use of a code that nobody knows is one too many; and whether to tell people.
local function is_dropped(use)
  if use.signed_in or use.kind == 'post_login' then return false end
  local used
  if use.kind == 'look' then
    used = tonumber(redis.call('GET', signed_out) or 0)
  else
    used = raise(signed_out, windows[2])
  end
  if used < limit or use.waiting or use.known then return false end
  return true, use.kind ~= 'look' and raise(warning, windows[3]) == 1
end

local function take(use, code_limit, robots)
  if use.limited then
    local dropped, warn = is_dropped(use)
    if dropped then return 'dropped', warn end
  end
  if use.kind == 'robot' then
    if use.waiting or use.known then
      redis.call('HINCRBY', robots, use.raw, 1)
      redis.call('PEXPIRE', robots, windows[4])
    end
    count(TODAY, 'robots', use.raw)
    return 'untracked'
  end
  if use.kind == 'look' or use.kind == 'check' then return 'untracked' end
  if is_known(use) then return 'repeated' end
  local outcome
  if use.kind == 'post_login' then
    outcome = post_login(use)
  elseif use.limited and raise(code_limit, windows[1]) > 1 then
    outcome = 'too_soon'
  else
    outcome = on_click(use)
  end
  count_use(use, outcome)
  return outcome
end

local replies, place = {}, 6 + days
for at = first_item, #items, 12 do
  local use = {
    kind = items[at], code = items[at + 1], signed_in = items[at + 2] == '1', known = items[at + 3] == '1',
    limited = items[at + 4] == '1', uid = items[at + 5], time = items[at + 6], parent = items[at + 7],
    visitor = items[at + 8], user = items[at + 9], raw = items[at + 10], page = items[at + 11],
  }
  local flat = redis.call('HGETALL', buffer .. ':' .. use.code)
  use.link, use.waiting = {}, #flat > 0
  for field = 1, #flat, 2 do use.link[flat[field]] = flat[field + 1] end
  use.storing = use.waiting and redis.call('ZSCORE', purgatory, use.code) and true or false
  local outcome, warn = take(use, names[place + 1], names[place + 2])
  local link, target = use.link, {}
  if use.waiting then
    target = { link.page_identifier or '', link.page_extra or '', link.preview_identifier or '', link.preview_extra or '' }
  end
  replies[#replies + 1] = { outcome, warn and 1 or 0, target }
  place = place + 2
end
store_counts()
return replies
