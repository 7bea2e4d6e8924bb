-- Says that a proxy is there, and how many are. KEYS: the proxies. ARGV: who says it, how long it is believed in ms.
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
call('ZADD', KEYS[1], now, ARGV[1])
call('ZREMRANGEBYSCORE', KEYS[1], '-inf', now - tonumber(ARGV[2]))
call('PEXPIRE', KEYS[1], 2 * tonumber(ARGV[2]))
return call('ZCARD', KEYS[1])
