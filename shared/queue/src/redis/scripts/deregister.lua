-- ARGV: worker, instance. Returns whether the name was its own, or nobody's.
if not may_follow(ARGV[1], ARGV[2], 3) then return {0} end
remove(ARGV[1])
return {1}
