-- ARGV: plan hash, lease in ms, strikes, generation floor, ticket floor. Returns the run as it is afterwards.
if redis.call('EXISTS', KEYS[1]) == 0 then
  purge()
  local generation = math.max(now_ms(), tonumber(ARGV[4]) + 1)
  redis.call('HSET', KEYS[1], 'plan_hash', ARGV[1], 'generation', digits(generation), 'state', 'active',
    'lease_ms', ARGV[2], 'max_strikes', ARGV[3], 'next_unit', '0', 'last_ticket', ARGV[5])
end
return redis.call('HMGET', KEYS[1], 'generation', 'plan_hash', 'state', 'next_unit', 'lease_ms', 'max_strikes')
