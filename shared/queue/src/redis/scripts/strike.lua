-- ARGV: generation, model, unit, attempt, cause. Returns `stale`, `requeued` or `dead`.
local worker = holder(ARGV[2], ARGV[3], ARGV[4])
if not worker then return {'stale'} end
return {strike(ARGV[2], ARGV[3], worker, ARGV[4], ARGV[5]) and 'dead' or 'requeued'}
