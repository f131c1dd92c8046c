-- ARGV: generation, worker, most units, whether the worker holds nothing of other runs, then models. Returns the
-- deadline, then model, unit, attempt, dialogues, payload and whether it is a suspect for each lease.
local worker, room, alone = ARGV[2], tonumber(ARGV[3]), ARGV[4] == '1'
local now = now_ms()
local reply = {digits(now + tonumber(of_run('lease_ms')))}
if of_run('state') ~= 'active' or redis.call('HEXISTS', prefix .. 'alone', worker) == 1 then return reply end

local function hand_out(model, read, attempt, suspect)
  local fields = read[2]
  for _, value in ipairs({model, unit_of(read[1]), digits(attempt), fields[2], fields[4], suspect}) do
    reply[#reply + 1] = value
  end
  room = room - 1
end

-- Leases a unit that was leased before.
local function claim(model, unit, suspect)
  local attempt = tonumber(redis.call('HGET', prefix .. 'attempts', unit)) + 1
  -- FORCE puts the entry back into the pending-entries list, RETRYCOUNT carries the attempts on.
  local read = redis.call('XCLAIM', work(model), 'w', worker, 0, entry(unit), 'FORCE', 'RETRYCOUNT', attempt)
  hand_out(model, read[1], attempt, suspect)
end

local function open(model)
  if not knows(model) then return false end
  if parked_until(model, now) then return false end
  -- One that is over must not begin again when the clock comes to its time once more.
  redis.call('HDEL', counts(model), 'parked_until', 'parked_for', 'parked_reason')
  return true
end

for i = 5, #ARGV do
  local model = ARGV[i]
  if room > 0 and open(model) then
    -- Returned units have lower ids than unread ones, so they go first.
    local free = prefix .. 'free:' .. model
    for _, unit in ipairs(redis.call('ZRANGE', free, 0, room - 1)) do
      redis.call('ZREM', free, unit)
      claim(model, unit, 0)
    end
    if room > 0 then
      local read = redis.call('XREADGROUP', 'GROUP', 'w', worker, 'COUNT', room, 'STREAMS', work(model), '>')
      for _, new in ipairs(read and read[1][2] or {}) do hand_out(model, new, 1, 0) end
    end
  end
end

local function holds_nothing()
  for _, model in ipairs(redis.call('SMEMBERS', prefix .. 'models')) do
    if #redis.call('XPENDING', work(model), 'w', '-', '+', 1, worker) > 0 then return false end
  end
  return true
end

-- If there is nothing else, a worker that holds nothing gets one suspect.
if #reply == 1 and room > 0 and alone and holds_nothing() then
  for i = 5, #ARGV do
    local model = ARGV[i]
    local first = open(model) and redis.call('ZRANGE', prefix .. 'waiting:' .. model, 0, 0)[1]
    if first then
      local unit = digits(tonumber(first))
      redis.call('ZREM', prefix .. 'waiting:' .. model, first)
      redis.call('HSET', prefix .. 'alone', worker, unit)
      redis.call('HINCRBY', counts(model), 'suspects_leased', 1)
      claim(model, unit, 1)
      break
    end
  end
end
return reply
