-- Every script but `create` and `forget` goes on only in the generation of its caller, ARGV[1].
local generation = of_run('generation')
if not generation then return {err = 'RUNGONE the run is not in this Redis'} end
if generation ~= ARGV[1] then return {err = 'STALEGEN ' .. generation} end
