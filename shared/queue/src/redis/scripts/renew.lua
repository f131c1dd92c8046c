-- ARGV: generation, worker, number of models, models, then model, unit and attempt of each lease that the worker
-- reports. Returns state, deadline and whether the worker holds a suspect, then model, unit, attempt, dialogues, payload
-- and whether it is that suspect for each lease that was renewed; dialogues are 0 and the payload is empty where the worker reported it.
local worker, models = ARGV[2], tonumber(ARGV[3])
local PAGE = 256
local reported = {}
for i = 4 + models, #ARGV, 3 do reported[ARGV[i] .. '\0' .. ARGV[i + 1]] = tonumber(ARGV[i + 2]) end

local suspect = redis.call('HGET', prefix .. 'alone', worker)
local reply = {of_run('state'), digits(now_ms() + tonumber(of_run('lease_ms'))), suspect and 1 or 0}
for i = 4, 3 + models do
  local model = ARGV[i]
  local from = '-'
  while from and knows(model) do
    local page = redis.call('XPENDING', work(model), 'w', from, '+', PAGE, worker)
    local claim = {}
    for _, lease in ipairs(page) do
      local unit, attempt = unit_of(lease[1]), lease[4]
      claim[#claim + 1] = lease[1]
      local dialogues, payload = 0, ''
      if reported[model .. '\0' .. unit] ~= attempt then dialogues, payload = content(model, unit) end
      for _, value in ipairs({model, unit, digits(attempt), dialogues, payload, unit == suspect and 1 or 0}) do
        reply[#reply + 1] = value
      end
    end
    if #claim > 0 then
      -- JUSTID leaves the delivery count, which is the fence, as it is; the idle time begins anew.
      claim[#claim + 1] = 'JUSTID'
      redis.call('XCLAIM', work(model), 'w', worker, 0, unpack(claim))
    end
    from = #page == PAGE and '(' .. page[PAGE][1] or nil
  end
end
return reply
