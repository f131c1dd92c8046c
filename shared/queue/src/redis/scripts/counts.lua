-- ARGV: generation. Returns label, added, pending, leased, dead, backlog, scored, failed, suspects pending and
-- leased, parked until and reason of each model. Only counts that the structures do not provide are stored; the
-- others are lengths.
local now = now_ms()
local reply = {}
for _, model in ipairs(redis.call('SMEMBERS', prefix .. 'models')) do
  local kept = redis.call('HMGET', counts(model), 'added', 'dead', 'backlog', 'scored', 'failed', 'parked_reason',
    'suspects_leased')
  local dead = tonumber(kept[2] or 0)
  local leased = redis.call('XPENDING', work(model), 'w')[1]
  local pending = redis.call('XLEN', work(model)) - leased - dead
  local parked = parked_until(model, now)
  local values = {model, kept[1] or 0, pending, leased, dead, kept[3] or 0, kept[4] or 0, kept[5] or 0,
    redis.call('ZCARD', prefix .. 'waiting:' .. model), kept[7] or 0, parked or 0, parked and kept[6] or ''}
  for _, value in ipairs(values) do reply[#reply + 1] = value end
end
return reply
