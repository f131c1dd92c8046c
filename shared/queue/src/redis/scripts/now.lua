-- KEYS[1]: the time of the latest call. Returns the time in ms. It is written, so that a server that takes no writes says so.
local time = redis.call('TIME')
local now = string.format('%.0f', tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000))
redis.call('SET', KEYS[1], now)
return {now}
