-- ARGV: generation, worker, most units, then models. Returns the deadline, then model, unit, attempt, dialogues and
-- payload of each lease.
local worker, room = ARGV[2], tonumber(ARGV[3])
local now = now_ms()
local reply = {digits(now + tonumber(of_run('lease_ms')))}
if of_run('state') ~= 'active' then return reply end

local function hand_out(model, read, attempt)
  local fields = read[2]
  for _, value in ipairs({model, unit_of(read[1]), digits(attempt), fields[2], fields[4]}) do
    reply[#reply + 1] = value
  end
  room = room - 1
end

local function parked(model)
  local until_ms = redis.call('HGET', counts(model), 'parked_until')
  return until_ms and tonumber(until_ms) > now
end

for i = 4, #ARGV do
  local model = ARGV[i]
  if room > 0 and knows(model) and not parked(model) then
    -- What was given back has a lower id than anything that was never read, so it goes first.
    local free = prefix .. 'free:' .. model
    for _, unit in ipairs(redis.call('ZRANGE', free, 0, room - 1)) do
      local attempt = tonumber(redis.call('HGET', prefix .. 'attempts', unit)) + 1
      -- FORCE puts the entry back into the pending-entries list, RETRYCOUNT carries the attempts on.
      local read = redis.call('XCLAIM', work(model), 'w', worker, 0, entry(unit), 'FORCE', 'RETRYCOUNT', attempt)
      redis.call('ZREM', free, unit)
      hand_out(model, read[1], attempt)
    end
    if room > 0 then
      local read = redis.call('XREADGROUP', 'GROUP', 'w', worker, 'COUNT', room, 'STREAMS', work(model), '>')
      for _, new in ipairs(read and read[1][2] or {}) do hand_out(model, new, 1) end
    end
  end
end
return reply
