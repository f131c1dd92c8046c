-- ARGV: generation, new state, then the states that may become it. Returns the state before and whether it changed.
local from = of_run('state')
for i = 3, #ARGV do
  if ARGV[i] == from then
    redis.call('HSET', KEYS[1], 'state', ARGV[2])
    return {from, 1}
  end
end
return {from, 0}
