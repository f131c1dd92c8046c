-- ARGV: plan hash, lease in ms, strikes, generation, ticket floor. Builds the run, unless it is here in this generation
-- or a later one: what is here in an earlier one, whatever its plan, is over. Returns the run as it is afterwards.
local found, ticket = of_run('generation'), ARGV[5]
local is_old = found and tonumber(found) < tonumber(ARGV[4])
if is_old then ticket = digits(math.max(tonumber(ticket), tonumber(of_run('last_ticket') or 0))) end
if is_old or not found then
  purge()
  redis.call('HSET', KEYS[1], 'plan_hash', ARGV[1], 'generation', ARGV[4], 'state', 'active',
    'lease_ms', ARGV[2], 'max_strikes', ARGV[3], 'next_unit', '0', 'last_ticket', ticket)
end
return redis.call('HMGET', KEYS[1], 'generation', 'plan_hash', 'state', 'next_unit', 'lease_ms', 'max_strikes')
