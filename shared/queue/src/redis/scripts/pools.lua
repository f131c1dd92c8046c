-- Returns release and info for each.
local reply = {}
for _, release in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
  reply[#reply + 1] = release
  reply[#reply + 1] = redis.call('HGET', KEYS[2], release)
end
return reply
