-- Returns 1 if there was such a run. What is left of an earlier, interrupted life goes too.
local there = redis.call('EXISTS', KEYS[1])
purge()
return {there}
