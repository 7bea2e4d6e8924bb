-- Writes what a checker measured, each finding a field of its own, and tells it to everybody who listens; a hint that an
-- endpoint was ejected is only told. KEYS: the findings. ARGV: channel, who writes, life of the whole in ms, ejected
-- subjects (one a line, "" for none), then pairs of subject and finding.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
local lines = { ARGV[2] }
for subject in string.gmatch(ARGV[4], '[^\n]+') do lines[#lines + 1] = 'e ' .. subject end
for i = 5, #ARGV, 2 do
  local finding = now .. ':' .. ARGV[i + 1]
  call('HSET', KEYS[1], ARGV[i], finding)
  lines[#lines + 1] = 'f ' .. ARGV[i] .. ' ' .. finding
end
if #ARGV > 4 then call('PEXPIRE', KEYS[1], ARGV[3]) end
redis.call('PUBLISH', ARGV[1], table.concat(lines, '\n'))
return 1
