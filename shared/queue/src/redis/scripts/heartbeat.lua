-- ARGV: worker, info, time to live in ms, most workers. Returns whether it is to drain.
local worker = ARGV[1]
if not redis.call('ZSCORE', KEYS[1], worker) and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
  return {err = 'WORKERSFULL'}
end
redis.call('ZADD', KEYS[1], digits(now + tonumber(ARGV[3])), worker)
redis.call('HSET', KEYS[2], worker, ARGV[2])
redis.call('HSET', KEYS[3], worker, digits(now))
return {redis.call('SISMEMBER', KEYS[4], worker)}
