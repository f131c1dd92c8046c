-- One round of a leader. KEYS: the leader. ARGV: the keys of runs and workers and the beginning of those of units; epoch, id and
-- number of the round; then changes, each with its kind. Returns what became of it and the leader that is named.
local leader, runs, workers, units = KEYS[1], ARGV[1], ARGV[2], ARGV[3]
local named = redis.call('HMGET', leader, 'epoch', 'id', 'name', 'round')
local function answer(word)
  return {word, named[1] or '0', named[2] or '', named[3] or ''}
end
if named[1] ~= ARGV[4] or named[2] ~= ARGV[5] then return answer('other') end
if named[4] == ARGV[6] then return answer('done') end
if tonumber(named[4]) + 1 ~= tonumber(ARGV[6]) then return answer('older') end
local at = 7
while ARGV[at] do
  local kind = ARGV[at]
  if kind == 'run' then
    redis.call('HSET', runs, ARGV[at + 1], ARGV[at + 2])
    at = at + 3
  elseif kind == 'run-gone' then
    redis.call('HDEL', runs, ARGV[at + 1])
    redis.call('DEL', units .. ARGV[at + 1])
    at = at + 2
  elseif kind == 'unit' then
    redis.call('HSET', units .. ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
    at = at + 4
  elseif kind == 'unit-gone' then
    redis.call('HDEL', units .. ARGV[at + 1], ARGV[at + 2])
    at = at + 3
  elseif kind == 'worker' then
    redis.call('HSET', workers, ARGV[at + 1], ARGV[at + 2])
    at = at + 3
  elseif kind == 'worker-gone' then
    redis.call('HDEL', workers, ARGV[at + 1])
    at = at + 2
  elseif kind == 'clear' then
    redis.call('HDEL', leader, 'whole')
    for _, name in ipairs(redis.call('HKEYS', runs)) do redis.call('DEL', units .. name) end
    redis.call('DEL', runs, workers)
    at = at + 1
  else
    redis.call('HSET', leader, 'whole', 1)
    at = at + 1
  end
end
redis.call('HSET', leader, 'round', ARGV[6])
redis.call('HINCRBY', leader, 'beat', 1)
return answer('done')
