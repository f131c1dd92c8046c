-- Returns 1 if there was such a run. Also removes remains of an interrupted removal.
local there = redis.call('EXISTS', KEYS[1])
purge()
return {there}
