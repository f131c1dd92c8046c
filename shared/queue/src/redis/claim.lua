-- Claims the next epoch. KEYS: the leader. ARGV: epoch and id of the one that is followed (0 and empty for none), the highest epoch
-- that the caller has seen, its id and its name. Returns the epoch, 0 if another one leads by now, and whether what is kept is whole.
local named = redis.call('HMGET', KEYS[1], 'epoch', 'id', 'whole')
if (named[1] or '0') ~= ARGV[1] or (named[2] or '') ~= ARGV[2] then return {0, 0} end
local epoch = math.max(tonumber(ARGV[1]), tonumber(ARGV[3])) + 1
redis.call('HSET', KEYS[1], 'epoch', epoch, 'id', ARGV[4], 'name', ARGV[5], 'round', 0)
redis.call('HDEL', KEYS[1], 'left')
redis.call('HINCRBY', KEYS[1], 'beat', 1)
return {epoch, tonumber(named[3] or 0)}
