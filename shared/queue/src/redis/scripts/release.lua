-- ARGV: generation, then model, unit and attempt of each fence. Returns 1 for each that held.
local reply = {}
for i = 2, #ARGV, 3 do
  local held = holder(ARGV[i], ARGV[i + 1], ARGV[i + 2])
  if held then give_back(ARGV[i], ARGV[i + 1], ARGV[i + 2], held) end
  reply[#reply + 1] = held and 1 or 0
end
return reply
