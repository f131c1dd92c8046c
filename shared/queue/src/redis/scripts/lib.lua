-- Prelude of every script on a run. KEYS[1] is the run's hash, `kgf:{RUN}:run`; every other key of the run has
-- the same hash tag and is built from it here. On a cluster all of them live on the node that KEYS[1] leads to.
--
-- kgf:{RUN}:run            hash: plan_hash, generation, state, lease_ms, max_strikes, next_unit, last_ticket
-- kgf:{RUN}:models         set of model labels
-- kgf:{RUN}:model:MODEL    hash: added, dead, suspects_leased (units), backlog (dialogues), scored, failed, parked_until,
--                          parked_for (ms), parked_reason
-- kgf:{RUN}:work:MODEL     stream of the units that are not done, entry id UNIT+1, fields d (dialogues) and p (payload);
--                          group `w`, one consumer per worker. Its pending-entries list is the lease table and holds
--                          nothing else: owner = worker, idle time = age of the lease, delivery count = attempt.
-- kgf:{RUN}:free:MODEL     sorted set of the pending units that were given back, by id
-- kgf:{RUN}:attempts       hash: unit -> attempts so far, for units that were given back
-- kgf:{RUN}:deaths         hash: unit -> one JSON object a line; a unit with more than FREE_DEATHS is a suspect, or dead
-- kgf:{RUN}:accused        hash: unit -> model, for suspects and dead letters
-- kgf:{RUN}:suspects       sorted set of the suspects, by id
-- kgf:{RUN}:waiting:MODEL  sorted set of the pending suspects, by number of deaths; members are ids of 16 digits,
--                          so that equal ones are in the order of ids
-- kgf:{RUN}:alone          hash: worker -> the suspect that it holds
-- kgf:{RUN}:dead           sorted set of the dead letters, by id
-- kgf:{RUN}:done:CELL      hash: iteration -> `s` or `f` and the ticket of the winner
-- kgf:{RUN}:cells          set of the names of those hashes
local prefix = string.match(KEYS[1], '^.-}:')

-- Deaths of workers that say nothing about a unit, as in unit.rs.
local FREE_DEATHS = 1

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

-- Until when the model is parked; nil where it is not. What is left of a parking is never more than it was given: then the
-- clock was ahead when it began, and has been set right.
local function parked_until(model, now)
  local kept = redis.call('HMGET', counts(model), 'parked_until', 'parked_for')
  local left = kept[1] and tonumber(kept[1]) - now
  if left and left > 0 and left <= tonumber(kept[2] or left) then return kept[1] end
  return nil
end

-- Registers the model, with its stream and group.
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

-- Ends a lease.
local function end_lease(model, unit, worker)
  redis.call('XACK', work(model), 'w', entry(unit))
  if redis.call('HGET', prefix .. 'alone', worker) == unit then
    redis.call('HDEL', prefix .. 'alone', worker)
    redis.call('HINCRBY', counts(model), 'suspects_leased', -1)
  end
end

local function deaths_of(unit)
  local lines = redis.call('HGET', prefix .. 'deaths', unit)
  if not lines then return 0, nil end
  local _, breaks = string.gsub(lines, '\n', '\n')
  return breaks + 1, lines
end

-- Makes a unit pending.
local function queue_up(model, unit)
  local deaths = deaths_of(unit)
  if deaths <= FREE_DEATHS then
    redis.call('ZADD', prefix .. 'free:' .. model, unit, unit)
  else
    redis.call('ZADD', prefix .. 'waiting:' .. model, deaths, string.format('%016.0f', tonumber(unit)))
  end
end

-- Ends a lease; the unit is pending again.
local function give_back(model, unit, attempt, worker)
  end_lease(model, unit, worker)
  redis.call('HSET', prefix .. 'attempts', unit, digits(tonumber(attempt)))
  queue_up(model, unit)
end

-- Ends a lease by the death of its worker. Returns 0 if that was the first death with the unit, which is free, 1 if it is a
-- suspect now, 2 if it was one and has another strike, 3 if it is dead.
local function take_over(model, unit, attempt, worker, cause)
  end_lease(model, unit, worker)
  redis.call('HSET', prefix .. 'attempts', unit, digits(tonumber(attempt)))
  local line = cjson.encode({worker = worker, attempt = tonumber(attempt), cause = cause, at_ms = now_ms()})
  local before, lines = deaths_of(unit)
  redis.call('HSET', prefix .. 'deaths', unit, lines and (lines .. '\n' .. line) or line)
  if before < FREE_DEATHS then
    queue_up(model, unit)
    return 0
  end
  -- The death that makes it a suspect is no strike.
  local strikes = before - FREE_DEATHS
  redis.call('HSET', prefix .. 'accused', unit, model)
  if strikes >= tonumber(of_run('max_strikes')) then
    redis.call('ZREM', prefix .. 'suspects', unit)
    redis.call('ZADD', prefix .. 'dead', unit, unit)
    redis.call('HINCRBY', counts(model), 'dead', 1)
    add_backlog(model, unit, -1)
    return 3
  end
  redis.call('ZADD', prefix .. 'suspects', unit, unit)
  queue_up(model, unit)
  return strikes == 0 and 1 or 2
end

-- Removes everything of the run.
local function purge()
  for _, model in ipairs(redis.call('SMEMBERS', prefix .. 'models')) do
    redis.call('UNLINK', work(model), prefix .. 'free:' .. model, prefix .. 'waiting:' .. model, counts(model))
  end
  for _, cell in ipairs(redis.call('SMEMBERS', prefix .. 'cells')) do
    redis.call('UNLINK', prefix .. 'done:' .. cell)
  end
  for _, name in ipairs({'run', 'models', 'cells', 'attempts', 'deaths', 'accused', 'suspects', 'alone', 'dead'}) do
    redis.call('UNLINK', prefix .. name)
  end
end
