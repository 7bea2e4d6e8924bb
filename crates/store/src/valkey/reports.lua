-- Reads what checkers measured. KEYS: the findings. Answers the server's time, then subjects and findings in turn.
local time = redis.call('TIME')
local answer = call('HGETALL', KEYS[1])
table.insert(answer, 1, string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000)))
return answer
