-- Takes away what was measured of endpoints that are gone, if nobody has measured them since.
-- KEYS: the findings. ARGV: age in ms from which a finding is old, then subjects.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
for i = 2, #ARGV do
  local at = string.match(call('HGET', KEYS[1], ARGV[i]) or '', '^(%d+):')
  if at and now - tonumber(at) >= tonumber(ARGV[1]) then call('HDEL', KEYS[1], ARGV[i]) end
end
return 1
