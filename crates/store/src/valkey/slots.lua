-- Releases slots and prolongs others, all of them the caller's own.
-- KEYS: slots. ARGV: their life and the grace in ms, how many are released, these, and those that go on.
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1])
local released = tonumber(ARGV[3])
for i = 4, 3 + released do call('ZREM', KEYS[1], ARGV[i]) end
for i = 4 + released, #ARGV do call('ZADD', KEYS[1], ends, ARGV[i]) end
if #ARGV > 3 + released then call('PEXPIRE', KEYS[1], tonumber(ARGV[1]) + tonumber(ARGV[2])) end
return 1
