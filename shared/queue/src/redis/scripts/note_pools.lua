-- ARGV: release, info, time to live in ms, most releases. Returns how many there are with this one; it is not kept if those are
-- too many.
local release = ARGV[1]
local releases = redis.call('ZCARD', KEYS[1])
if not redis.call('ZSCORE', KEYS[1], release) then releases = releases + 1 end
if releases <= tonumber(ARGV[4]) then
  redis.call('ZADD', KEYS[1], digits(now + tonumber(ARGV[3])), release)
  redis.call('HSET', KEYS[2], release, ARGV[2])
  -- Nobody reads them where no coordinator is left.
  for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[3]) end
end
return {releases}
