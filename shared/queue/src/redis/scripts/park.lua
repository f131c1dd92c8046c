-- ARGV: generation, model, milliseconds, reason.
know(ARGV[2])
redis.call('HSET', counts(ARGV[2]), 'parked_until', digits(now_ms() + tonumber(ARGV[3])),
  'parked_for', ARGV[3], 'parked_reason', ARGV[4])
return {}
