-- ARGV: generation, worker or nothing, most leases per model, cause. Returns 1 if more are left, then model, unit and
-- whether it is dead now for each. XAUTOCLAIM would find the same entries, but does not say whose they were, and a
-- strike names its worker.
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
    local dead = strike(model, unit, lease[2], lease[4], cause)
    for _, value in ipairs({model, unit, dead and 1 or 0}) do reply[#reply + 1] = value end
  end
  -- A consumer that holds nothing may go; deleting one that holds leases would lose them.
  if worker ~= '' and reply[1] == 0 then redis.call('XGROUP', 'DELCONSUMER', work(model), 'w', worker) end
end
return reply
