-- ARGV: worker. Returns whether it is registered.
if not redis.call('ZSCORE', KEYS[1], ARGV[1]) then return {0} end
redis.call('SADD', KEYS[4], ARGV[1])
return {1}
