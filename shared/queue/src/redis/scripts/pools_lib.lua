-- What conductors say of the pools of their releases. KEYS: `kgf-pools:{all}:` followed by
-- 1 expiry  sorted set: release by the time until which it counts, in ms
-- 2 info    hash: release -> what is said of its pools
local function digits(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

for _, release in ipairs(redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now))) do
  redis.call('ZREM', KEYS[1], release)
  redis.call('HDEL', KEYS[2], release)
end
