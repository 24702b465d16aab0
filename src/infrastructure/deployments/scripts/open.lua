-- open: makes a commit the current build of a unit and says which one was before.
-- Promise: of instances that open with the same new commit, exactly one sees the old one.
-- KEYS   1 build_hash  string; the commit of the unit's current build
-- ARGV   1 sha         commit of the opening instance
-- Reply  the previous commit, or an empty text when there was none
-- Crash  before: nothing happened. After: the commit is set and not built; its row says so, and the next instance that opens has it built.
local build_hash, sha = KEYS[1], ARGV[1]
return redis.call('SET', build_hash, sha, 'GET') or ''
