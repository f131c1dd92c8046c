-- The registered workers. KEYS: `kgf-workers:{all}:` followed by
-- 1 expiry    sorted set: worker by the time at which its registration ends, in ms
-- 2 info      hash: worker -> what it says about itself
-- 3 seen      hash: worker -> when it last did, in ms
-- 4 draining  set of the workers that were asked to drain
-- 5 instance  hash: worker -> its process
-- 6 identity  hash: worker -> whose it is; nothing where nobody is known by name
local function digits(number) return string.format('%.0f', number) end

local time = redis.call('TIME')
local now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)

local function remove(worker)
  redis.call('ZREM', KEYS[1], worker)
  redis.call('HDEL', KEYS[2], worker)
  redis.call('HDEL', KEYS[3], worker)
  redis.call('SREM', KEYS[4], worker)
  redis.call('HDEL', KEYS[5], worker)
  redis.call('HDEL', KEYS[6], worker)
end

-- Whether the name may pass to the process `instance`, which follows those in ARGV from `first` on.
local function may_follow(worker, instance, first)
  local holder = redis.call('HGET', KEYS[5], worker) or ''
  if holder == instance or holder == '' or instance == '' then return true end
  for i = first, #ARGV do
    if ARGV[i] == holder then return true end
  end
  return false
end

-- Who was heard of later than now was so by a clock that was ahead and has been set right. Its registration lasts from now on as
-- long as it was given then. Such registrations end last of all.
local function heard_of_by_a_clock_ahead()
  local last = redis.call('ZREVRANGE', KEYS[1], 0, 0, 'WITHSCORES')
  if not last[1] then return nil end
  local seen = tonumber(redis.call('HGET', KEYS[3], last[1]) or 0)
  if seen <= now then return nil end
  return last[1], tonumber(last[2]) - seen
end

for _ = 1, redis.call('ZCARD', KEYS[1]) do
  local worker, lasts = heard_of_by_a_clock_ahead()
  if not worker then break end
  redis.call('ZADD', KEYS[1], digits(now + lasts), worker)
  redis.call('HSET', KEYS[3], worker, digits(now))
end

-- Where nothing can be written, nobody can renew its registration, and none ends.
local function is_writable(worker)
  return type(redis.pcall('ZADD', KEYS[1], 'XX', redis.call('ZSCORE', KEYS[1], worker), worker)) == 'number'
end

local silent = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', digits(now))
if silent[1] and is_writable(silent[1]) then
  for _, worker in ipairs(silent) do remove(worker) end
end
