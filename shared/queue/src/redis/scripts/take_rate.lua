-- KEYS[1]: when the bucket will be full again, in microseconds; absent where it is full. ARGV: microseconds per permit,
-- burst, permits. Returns how many milliseconds to wait, 0 if the permits were taken.
local interval, burst, permits = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000000 + tonumber(time[2])
-- A bucket is never emptier than empty: then the clock was ahead, and has been set right.
local full = math.min(tonumber(redis.call('GET', KEYS[1]) or 0), now + burst * interval)
local after = math.max(full, now) + permits * interval
local wait = after - (now + burst * interval)
if wait > 0 then return {math.ceil(wait / 1000)} end
-- A full bucket needs no key, so unused buckets expire by themselves.
redis.call('SET', KEYS[1], string.format('%.0f', after), 'PX', string.format('%.0f', math.ceil((after - now) / 1000)))
return {0}
