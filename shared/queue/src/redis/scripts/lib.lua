-- What every script on a run starts with. KEYS[1] is the run's hash, `kgf:{RUN}:run`; every other key of the run has
-- the same hash tag and is built from it here. On a cluster all of them live on the node that KEYS[1] leads to.
--
-- kgf:{RUN}:run            hash: plan_hash, generation, state, lease_ms, max_strikes, next_unit, last_ticket
-- kgf:{RUN}:models         set of model labels
-- kgf:{RUN}:model:MODEL    hash: added, dead (units), backlog (dialogues), scored, failed, parked_until, parked_reason
-- kgf:{RUN}:work:MODEL     stream of the units that are not done, entry id UNIT+1, fields d (dialogues) and p (payload);
--                          group `w`, one consumer per worker. Its pending-entries list is the lease table and holds
--                          nothing else: owner = worker, idle time = age of the lease, delivery count = attempt.
-- kgf:{RUN}:free:MODEL     sorted set of the units that were given back and wait again, by id
-- kgf:{RUN}:attempts       hash: unit -> attempts so far, for units that were given back
-- kgf:{RUN}:strikes        hash: unit -> one JSON object a line
-- kgf:{RUN}:dead           sorted set of the units set aside, by id; `deadmodel` is a hash: unit -> model
-- kgf:{RUN}:done:CELL      hash: iteration -> `s` or `f` and the ticket of the record that counts
-- kgf:{RUN}:cells          set of the names of those hashes
local prefix = string.match(KEYS[1], '^.-}:')

-- Lua prints large numbers as 1.7e+15; Redis wants all digits.
local function digits(number) return string.format('%.0f', number) end

local function now_us()
  local time = redis.call('TIME')
  return tonumber(time[1]) * 1000000 + tonumber(time[2])
end

local function now_ms() return math.floor(now_us() / 1000) end

local function of_run(field) return redis.call('HGET', KEYS[1], field) end

local function work(model) return prefix .. 'work:' .. model end

local function counts(model) return prefix .. 'model:' .. model end

-- Unit 0 is entry 1-0, because 0-0 is no entry id.
local function entry(unit) return digits(tonumber(unit) + 1) .. '-0' end

local function unit_of(id) return digits(tonumber(string.match(id, '^%d+')) - 1) end

local function knows(model) return redis.call('SISMEMBER', prefix .. 'models', model) == 1 end

-- Makes the model known. A known model has its stream and its group.
local function know(model)
  if redis.call('SADD', prefix .. 'models', model) == 1 then
    redis.call('XGROUP', 'CREATE', work(model), 'w', '0', 'MKSTREAM')
  end
end

-- Dialogues and payload of a unit that is not done.
local function content(model, unit)
  local found = redis.call('XRANGE', work(model), entry(unit), entry(unit))
  local fields = found[1][2]
  return fields[2], fields[4]
end

-- The worker that holds the unit in this very attempt, or nil.
local function holder(model, unit, attempt)
  if not knows(model) then return nil end
  local lease = redis.call('XPENDING', work(model), 'w', entry(unit), entry(unit), 1)[1]
  if lease and lease[4] == tonumber(attempt) then return lease[2] end
  return nil
end

local function add_backlog(model, unit, sign)
  local dialogues = content(model, unit)
  redis.call('HINCRBY', counts(model), 'backlog', sign * tonumber(dialogues))
end

-- Ends a lease; the unit waits again unless the caller puts it elsewhere.
local function give_back(model, unit, attempt)
  redis.call('XACK', work(model), 'w', entry(unit))
  redis.call('HSET', prefix .. 'attempts', unit, digits(tonumber(attempt)))
  redis.call('ZADD', prefix .. 'free:' .. model, unit, unit)
end

-- Ends a lease with a strike. True if the unit is dead now.
local function strike(model, unit, worker, attempt, cause)
  give_back(model, unit, attempt)
  local line = cjson.encode({worker = worker, attempt = tonumber(attempt), cause = cause, at_ms = now_ms()})
  local lines = redis.call('HGET', prefix .. 'strikes', unit)
  lines = lines and (lines .. '\n' .. line) or line
  redis.call('HSET', prefix .. 'strikes', unit, lines)
  local _, breaks = string.gsub(lines, '\n', '\n')
  if breaks + 1 < tonumber(of_run('max_strikes')) then return false end
  redis.call('ZREM', prefix .. 'free:' .. model, unit)
  redis.call('ZADD', prefix .. 'dead', unit, unit)
  redis.call('HSET', prefix .. 'deadmodel', unit, model)
  redis.call('HINCRBY', counts(model), 'dead', 1)
  add_backlog(model, unit, -1)
  return true
end

-- Removes everything of the run.
local function purge()
  for _, model in ipairs(redis.call('SMEMBERS', prefix .. 'models')) do
    redis.call('UNLINK', work(model), prefix .. 'free:' .. model, counts(model))
  end
  for _, cell in ipairs(redis.call('SMEMBERS', prefix .. 'cells')) do
    redis.call('UNLINK', prefix .. 'done:' .. cell)
  end
  for _, name in ipairs({'run', 'models', 'cells', 'attempts', 'strikes', 'dead', 'deadmodel'}) do
    redis.call('UNLINK', prefix .. name)
  end
end
