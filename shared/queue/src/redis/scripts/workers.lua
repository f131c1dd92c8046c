-- Returns worker, instance, info, when it was seen and whether it drains for each.
local reply = {}
for _, worker in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  reply[#reply + 1] = worker
  reply[#reply + 1] = redis.call('HGET', KEYS[5], worker) or ''
  reply[#reply + 1] = redis.call('HGET', KEYS[2], worker)
  reply[#reply + 1] = redis.call('HGET', KEYS[3], worker)
  reply[#reply + 1] = redis.call('SISMEMBER', KEYS[4], worker)
end
return reply
