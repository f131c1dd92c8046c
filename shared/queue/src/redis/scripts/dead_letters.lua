-- ARGV: generation, lowest and highest unit as ZRANGEBYSCORE takes them, most letters. Returns unit, model, dialogues,
-- payload and strikes of each.
local reply = {}
for _, unit in ipairs(redis.call('ZRANGEBYSCORE', prefix .. 'dead', ARGV[2], ARGV[3], 'LIMIT', 0, ARGV[4])) do
  local model = redis.call('HGET', prefix .. 'deadmodel', unit)
  local dialogues, payload = content(model, unit)
  local strikes = redis.call('HGET', prefix .. 'strikes', unit) or ''
  for _, value in ipairs({unit, model, dialogues, payload, strikes}) do reply[#reply + 1] = value end
end
return reply
