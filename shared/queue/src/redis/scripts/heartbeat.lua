-- ARGV: worker, info, time to live in ms, most workers, most workers of an identity, instance, identity, then the instances
-- that it follows. Returns whether it is to drain; or -1, and instance, info, ms since it was heard of and ms until its
-- registration ends of another process that has the name.
local worker, instance, identity = ARGV[1], ARGV[6], ARGV[7]
local most_of_identity = tonumber(ARGV[5])

-- Whether the identity has no place for another worker. Nothing is counted while there are too few workers for that.
local function has_all()
  if identity == '' or redis.call('ZCARD', KEYS[1]) < most_of_identity then return false end
  local own = 0
  for _, other in ipairs(redis.call('ZRANGE', KEYS[1], 0, -1)) do
    if redis.call('HGET', KEYS[6], other) == identity then own = own + 1 end
    if own >= most_of_identity then return true end
  end
  return false
end

local expires = redis.call('ZSCORE', KEYS[1], worker)
if not expires and redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) then
  return {err = 'WORKERSFULL'}
end
if not expires and has_all() then
  return {err = 'IDENTITYFULL'}
end
if expires and not may_follow(worker, instance, 8) then
  local seen = tonumber(redis.call('HGET', KEYS[3], worker))
  return {-1, redis.call('HGET', KEYS[5], worker), redis.call('HGET', KEYS[2], worker), digits(math.max(now - seen, 0)),
    digits(tonumber(expires) - now)}
end
redis.call('ZADD', KEYS[1], digits(now + tonumber(ARGV[3])), worker)
redis.call('HSET', KEYS[2], worker, ARGV[2])
redis.call('HSET', KEYS[3], worker, digits(now))
redis.call('HSET', KEYS[5], worker, instance)
if identity == '' then redis.call('HDEL', KEYS[6], worker) else redis.call('HSET', KEYS[6], worker, identity) end
return {redis.call('SISMEMBER', KEYS[4], worker)}
