-- apply: everything that one unit of work counts, in one step.
-- Promise: a pointer to the earliest day is lowered before anything is counted on that day; either all is counted or nothing.
-- KEYS   1 ...counters    the keys of the operations, in their order
-- ARGV   1 ...operations  for each operation its name and arguments
-- Reply  how many operations ran; -1: an `unless` held, nothing was written
-- Crash  before: nothing was counted. After: all of it was; a repeat would count it twice.
local counters, operations = KEYS, ARGV

-- include: operations.fragment.lua

return apply_operations(counters, 1, operations, 1)
