-- KEYS: the bond of the queue. ARGV: the bond that it is expected to have, empty for none, and the new one. Returns the
-- bond that it has afterwards.
local bond = redis.call('GET', KEYS[1]) or ''
if bond == ARGV[1] then
  bond = ARGV[2]
  redis.call('SET', KEYS[1], bond)
end
return {bond}
