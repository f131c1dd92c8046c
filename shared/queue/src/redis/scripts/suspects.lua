-- ARGV: generation, `dead`, `suspects` or both with a space between them, lowest and highest unit as ZRANGEBYSCORE takes
-- them, most of each. Returns unit, model, dialogues, payload, deaths and whether it is dead for each.
local reply = {}
for set in string.gmatch(ARGV[2], '%a+') do
  for _, unit in ipairs(redis.call('ZRANGEBYSCORE', prefix .. set, ARGV[3], ARGV[4], 'LIMIT', 0, ARGV[5])) do
    local model = redis.call('HGET', prefix .. 'accused', unit)
    local dialogues, payload = content(model, unit)
    local deaths = redis.call('HGET', prefix .. 'deaths', unit)
    for _, value in ipairs({unit, model, dialogues, payload, deaths, set == 'dead' and 1 or 0}) do
      reply[#reply + 1] = value
    end
  end
end
return reply
