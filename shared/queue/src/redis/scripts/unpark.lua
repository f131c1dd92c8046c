-- ARGV: generation, model.
redis.call('HDEL', counts(ARGV[2]), 'parked_until', 'parked_for', 'parked_reason')
return {}
