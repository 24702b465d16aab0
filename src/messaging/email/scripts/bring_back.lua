-- bring_back: returns mails that were set aside to the queue, the oldest first.
-- Promise: a mail is always in exactly one of the two lists; order is kept.
-- KEYS   1 paused   list; mails of lists that were set aside
--        2 to_send  list; producers append on the right
-- ARGV   1 most     integer >= 1; how many to return at most
-- Reply  how many are left aside
-- Crash  before: nothing happened. After: they wait to be sent.
local paused, to_send, most = KEYS[1], KEYS[2], tonumber(ARGV[1])

for _ = 1, most do
  if not redis.call('LMOVE', paused, to_send, 'LEFT', 'RIGHT') then
    break
  end
end
return redis.call('LLEN', paused)
