-- ARGV: generation, then units. Returns how many of them were dead.
local requeued = 0
for i = 2, #ARGV do
  local unit = ARGV[i]
  if redis.call('ZREM', prefix .. 'dead', unit) == 1 then
    local model = redis.call('HGET', prefix .. 'accused', unit)
    redis.call('HDEL', prefix .. 'accused', unit)
    redis.call('HDEL', prefix .. 'deaths', unit)
    redis.call('HINCRBY', counts(model), 'dead', -1)
    queue_up(model, unit)
    add_backlog(model, unit, 1)
    requeued = requeued + 1
  end
end
return {requeued}
