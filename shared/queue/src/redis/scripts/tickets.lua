-- ARGV: generation, how many. Returns the first.
local first = math.max(tonumber(of_run('last_ticket')) + 1, now_us())
redis.call('HSET', KEYS[1], 'last_ticket', digits(first + tonumber(ARGV[2]) - 1))
return {digits(first)}
