-- ARGV: generation, worker or nothing, most leases per model, cause. Returns 1 if more are left, then model, unit and
-- what became of it (see `take_over`) for each. XAUTOCLAIM would find the same entries, but does not say whose they
-- were, and a death names its worker.
-- A server without memory lets scripts go on that have deleted something, so that leases would be taken over which nobody could
-- renew. This write is refused there, and with it all that follows.
redis.call('HSET', KEYS[1], 'state', of_run('state'))
local worker, most, cause = ARGV[2], tonumber(ARGV[3]), ARGV[4]
local reply = {0}
for _, model in ipairs(redis.call('SMEMBERS', prefix .. 'models')) do
  local due
  if worker == '' then
    due = redis.call('XPENDING', work(model), 'w', 'IDLE', of_run('lease_ms'), '-', '+', most + 1)
  else
    due = redis.call('XPENDING', work(model), 'w', '-', '+', most + 1, worker)
  end
  if #due > most then
    reply[1] = 1
    due[#due] = nil
  end
  for _, lease in ipairs(due) do
    local unit = unit_of(lease[1])
    local fate = take_over(model, unit, lease[4], lease[2], cause)
    for _, value in ipairs({model, unit, fate}) do reply[#reply + 1] = value end
  end
  -- A consumer without leases is deleted; deleting one with leases would lose them.
  if worker ~= '' and reply[1] == 0 then redis.call('XGROUP', 'DELCONSUMER', work(model), 'w', worker) end
end
return reply
