-- Implements `domain::Standing`, like the memory store; differential tests compare both. ARGV: generation, then
-- model, cell, iteration and record of each. A record is `s` (scored) or `f` (failed) and its ticket. Returns an
-- effect and the record concerned for each.
local function beats(new, old)
  local kind, other = string.sub(new, 1, 1), string.sub(old, 1, 1)
  if kind ~= other then return kind == 's' end
  return tonumber(string.sub(new, 2)) < tonumber(string.sub(old, 2))
end

local function count(model, record, by)
  redis.call('HINCRBY', counts(model), string.sub(record, 1, 1) == 's' and 'scored' or 'failed', by)
end

local reply = {}
for i = 2, #ARGV, 4 do
  local model, cell, iteration, new = ARGV[i], ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local key = prefix .. 'done:' .. cell
  local old = redis.call('HGET', key, iteration)
  local verdict
  if not old then
    verdict = 'first'
    know(model)
    redis.call('SADD', prefix .. 'cells', cell)
  elseif old == new then
    verdict = 'repeated'
  elseif beats(new, old) then
    verdict = 'supersedes'
    count(model, old, -1)
  else
    verdict = 'loses'
  end
  if verdict == 'first' or verdict == 'supersedes' then
    redis.call('HSET', key, iteration, new)
    count(model, new, 1)
  end
  reply[#reply + 1] = verdict
  reply[#reply + 1] = old or ''
end
return reply
