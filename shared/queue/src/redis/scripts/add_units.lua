-- ARGV: generation, first unit, then model, dialogues and payload of each. Returns whether they were added, and the
-- next unit expected.
local unit = tonumber(of_run('next_unit'))
if unit ~= tonumber(ARGV[2]) then return {0, digits(unit)} end
for i = 3, #ARGV, 3 do
  local model = ARGV[i]
  know(model)
  redis.call('XADD', work(model), entry(unit), 'd', ARGV[i + 1], 'p', ARGV[i + 2])
  redis.call('HINCRBY', counts(model), 'added', 1)
  redis.call('HINCRBY', counts(model), 'backlog', ARGV[i + 1])
  unit = unit + 1
end
redis.call('HSET', KEYS[1], 'next_unit', digits(unit))
return {1, digits(unit)}
