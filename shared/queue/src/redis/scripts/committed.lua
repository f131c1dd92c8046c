-- ARGV: generation, then cell and iteration of each. Returns each winner, or nothing.
local reply = {}
for i = 2, #ARGV, 2 do
  reply[#reply + 1] = redis.call('HGET', prefix .. 'done:' .. ARGV[i], ARGV[i + 1]) or ''
end
return reply
