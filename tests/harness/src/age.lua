-- Makes everything in the queue look older, so that tests need not wait. ARGV: milliseconds.
local by = tonumber(ARGV[1])
local function digits(number) return string.format('%.0f', number) end

local ageing = {
  stream = function(key)
    for _, lease in ipairs(redis.call('XPENDING', key, 'w', '-', '+', 100000)) do
      redis.call('XCLAIM', key, 'w', lease[2], 0, lease[1], 'IDLE', lease[3] + by, 'JUSTID')
    end
  end,
  hash = function(key)
    if string.find(key, '}:seen$') then
      for _, worker in ipairs(redis.call('HKEYS', key)) do
        redis.call('HSET', key, worker, digits(tonumber(redis.call('HGET', key, worker)) - by))
      end
    end
    local parked = redis.call('HGET', key, 'parked_until')
    if parked then redis.call('HSET', key, 'parked_until', digits(tonumber(parked) - by)) end
  end,
  zset = function(key)
    if not string.find(key, '}:expiry$') then return end
    for _, worker in ipairs(redis.call('ZRANGE', key, 0, -1)) do redis.call('ZINCRBY', key, -by, worker) end
  end,
  string = function(key)
    redis.call('SET', key, digits(tonumber(redis.call('GET', key)) - by * 1000), 'KEEPTTL')
  end,
  set = function() end,
}
for _, key in ipairs(redis.call('KEYS', 'kgf*')) do ageing[redis.call('TYPE', key).ok](key) end
return {}
