-- ARGV: worker.
remove(ARGV[1])
return {}
