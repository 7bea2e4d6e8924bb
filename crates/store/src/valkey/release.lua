-- Ends one's own lease. KEYS: the lease. ARGV: holder.
if call('GET', KEYS[1]) == ARGV[1] then return call('DEL', KEYS[1]) end
return 0
