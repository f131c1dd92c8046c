-- ARGV: worker, info, time to live in ms, most workers, instance, then the instances that it follows. Returns whether it
-- is to drain; or -1, and instance, info, ms since it was heard of and ms until its registration ends of another process
-- that has the name.
local worker, instance = ARGV[1], ARGV[5]
local expires = redis.call('ZSCORE', KEYS[1], worker)
if not expires and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
  return {err = 'WORKERSFULL'}
end
if expires and not may_follow(worker, instance, 6) then
  local seen = tonumber(redis.call('HGET', KEYS[3], worker))
  return {-1, redis.call('HGET', KEYS[5], worker), redis.call('HGET', KEYS[2], worker), digits(math.max(now - seen, 0)),
    digits(tonumber(expires) - now)}
end
redis.call('ZADD', KEYS[1], digits(now + tonumber(ARGV[3])), worker)
redis.call('HSET', KEYS[2], worker, ARGV[2])
redis.call('HSET', KEYS[3], worker, digits(now))
redis.call('HSET', KEYS[5], worker, instance)
return {redis.call('SISMEMBER', KEYS[4], worker)}
