-- ARGV: generation, then model, unit and attempt of each fence. Returns 1 for each that held.
local reply = {}
for i = 2, #ARGV, 3 do
  local model, unit = ARGV[i], ARGV[i + 1]
  local held = holder(model, unit, ARGV[i + 2])
  if held then
    add_backlog(model, unit, -1)
    end_lease(model, unit, held)
    redis.call('XDEL', work(model), entry(unit))
    for _, name in ipairs({'attempts', 'deaths', 'accused'}) do redis.call('HDEL', prefix .. name, unit) end
    redis.call('ZREM', prefix .. 'suspects', unit)
  end
  reply[#reply + 1] = held and 1 or 0
end
return reply
