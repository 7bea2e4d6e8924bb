-- Takes a lease, or prolongs one's own. KEYS: the lease. ARGV: holder, its life in ms.
local held = call('GET', KEYS[1])
if held and held ~= ARGV[1] then return 0 end
call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1
