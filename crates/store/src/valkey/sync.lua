-- Says hello, tells what this replica dispatched, and reads what others know. Each replica writes fields of its own.
-- KEYS: park, learned, replicas, hours, wants, uses. ARGV: holder, whether to say hello ("1"), proxies it knows of ("" for
-- none), its hours ("" for nothing new), whether to read the hours of others ("1"), what it is asked for ("": not told),
-- what it uses, as "window:thousandths" by blanks ("": not told).
local GONE, DAY, NEW = 600000, 90000000, 3000
local holder, knows = ARGV[1], tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local live = 0
if ARGV[2] == '1' then
  live = 1
  local heard = call('HGETALL', KEYS[3])
  for i = 1, #heard, 2 do
    if heard[i] ~= holder then
      local at = string.match(heard[i + 1], '^(%d+):%d+$')
      if at == nil then return redis.error_reply('FOREIGN ' .. KEYS[3]) end
      if now - tonumber(at) >= GONE then call('HDEL', KEYS[3], heard[i]) else live = live + 1 end
    end
  end
  call('HSET', KEYS[3], holder, string.format('%.0f:%.0f', now, math.max(math.min(knows or live, live), 1)))
  call('PEXPIRE', KEYS[3], 2 * GONE)
end
if ARGV[4] ~= '' then
  call('HSET', KEYS[4], holder, ARGV[4])
  call('PEXPIRE', KEYS[4], DAY)
end
local hours = {}
if ARGV[5] == '1' then
  local told = call('HGETALL', KEYS[4])
  local oldest = math.floor(now / 3600000) - 24
  for i = 1, #told, 2 do
    local newest = tonumber(string.match(told[i + 1], '^(%d+):') or '')
    if newest == nil then return redis.error_reply('FOREIGN ' .. KEYS[4]) end
    if newest < oldest then call('HDEL', KEYS[4], told[i])
    elseif told[i] ~= holder then hours[#hours + 1] = told[i + 1] end
  end
end
local wanted = 0
if ARGV[6] ~= '' then
  local told = call('HGETALL', KEYS[5])
  for i = 1, #told, 2 do
    local at, rate = string.match(told[i + 1], '^(%d+):(%d+)$')
    if at == nil then return redis.error_reply('FOREIGN ' .. KEYS[5]) end
    if now - tonumber(at) >= GONE then call('HDEL', KEYS[5], told[i])
    elseif told[i] ~= holder and now - tonumber(at) < NEW then wanted = wanted + tonumber(rate) end
  end
  call('HSET', KEYS[5], holder, string.format('%.0f:%s', now, ARGV[6]))
  call('PEXPIRE', KEYS[5], 2 * GONE)
end
local sums, uses = {}, {}
if ARGV[7] ~= '' then
  local told = call('HGETALL', KEYS[6])
  for i = 1, #told, 2 do
    local at, list = string.match(told[i + 1], '^(%d+);([%d: ]+)$')
    if at == nil then return redis.error_reply('FOREIGN ' .. KEYS[6]) end
    if now - tonumber(at) >= GONE then call('HDEL', KEYS[6], told[i])
    elseif told[i] ~= holder and now - tonumber(at) < NEW then
      for window, used in string.gmatch(list, '(%d+):(%d+)') do sums[window] = (sums[window] or 0) + tonumber(used) end
    end
  end
  for window, used in pairs(sums) do
    uses[#uses + 1] = tonumber(window)
    uses[#uses + 1] = used
  end
  call('HSET', KEYS[6], holder, string.format('%.0f;%s', now, ARGV[7]))
  call('PEXPIRE', KEYS[6], 2 * GONE)
end
return { now, live, call('GET', KEYS[1]) or '', call('GET', KEYS[2]) or '', hours, wanted, uses }
