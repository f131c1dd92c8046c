-- A leader ends. KEYS: the leader. ARGV: its epoch and id.
local named = redis.call('HMGET', KEYS[1], 'epoch', 'id')
if named[1] == ARGV[1] and named[2] == ARGV[2] then redis.call('HSET', KEYS[1], 'left', 1) end
return {}
