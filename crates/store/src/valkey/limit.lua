-- One subject's limits: every dimension is checked first, then charged, in one step; a refusal changes nothing. With
-- need = waiting and nothing more it is one request; else a block that is spent elsewhere without asking.
-- KEYS: windows, slots. ARGV: what one request needs, what all that wait need, what shall be had beyond that (requests
-- and units of each), replicas, the limit of slots, the slot wanted ("" for none of either), its life and the grace in
-- ms, how many slots are released, these; then of each window its name, unit ("r" or "u"), period in ms and limit ("" for
-- none).
-- Answers: whether it is granted, the time, slots held, requests and units granted, and each window's use.
local windows, slots = KEYS[1], KEYS[2]
local need = { r = tonumber(ARGV[1]), u = tonumber(ARGV[2]) }
local waiting = { r = tonumber(ARGV[3]), u = tonumber(ARGV[4]) }
local more = { r = tonumber(ARGV[5]), u = tonumber(ARGV[6]) }
local replicas, most, slot = tonumber(ARGV[7]), tonumber(ARGV[8]), ARGV[9]
local life, grace, released = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local refused = false

for i = 13, 12 + released do call('ZREM', slots, ARGV[i]) end
local held = 0
if most then
  call('ZREMRANGEBYSCORE', slots, '-inf', now)
  held = call('ZCARD', slots)
  if slot ~= '' and held >= most then refused = true end
end

local list, names = {}, {}
for i = 13 + released, #ARGV, 4 do
  list[#list + 1] = { unit = ARGV[i + 1], period = tonumber(ARGV[i + 2]), limit = tonumber(ARGV[i + 3]) }
  names[#names + 1] = ARGV[i]
end
local longest, stored = 0, {}
if #names > 0 then stored = call('HMGET', windows, unpack(names)) end
for i, window in ipairs(list) do
  window.number, window.used = math.floor(now / window.period), 0
  if stored[i] then
    local number, used = string.match(stored[i], '^(%d+):(%d+)$')
    if number == nil then return redis.error_reply('FOREIGN ' .. windows) end
    -- A clock that was set back, by a failover say, must not open a window again.
    if tonumber(number) >= window.number then window.number, window.used = tonumber(number), tonumber(used) end
  end
  if window.limit and need[window.unit] > 0 and window.used + need[window.unit] > window.limit then refused = true end
  longest = math.max(longest, window.period)
end

local granted = { r = waiting.r + more.r, u = waiting.u + more.u }
if refused then granted = { r = 0, u = 0 } else
  for _, window in ipairs(list) do
    if window.limit then
      local left = window.limit - window.used
      -- The nearer the end, the smaller the blocks, so that little of it lies unused with others.
      local beyond = math.min(more[window.unit], math.floor(left / (2 * replicas)))
      local most_here = math.max(need[window.unit], math.min(waiting[window.unit] + beyond, left))
      granted[window.unit] = math.min(granted[window.unit], most_here)
    end
  end
end

local answer = { refused and 0 or 1, now, held, granted.r, granted.u }
local written = {}
for i, window in ipairs(list) do
  window.used = window.used + granted[window.unit]
  answer[#answer + 1] = window.used
  written[#written + 1] = names[i]
  written[#written + 1] = string.format('%.0f:%.0f', window.number, window.used)
end
if not refused then
  if #written > 0 then
    call('HSET', windows, unpack(written))
    call('PEXPIRE', windows, longest + grace)
  end
  if most and slot ~= '' then
    call('ZADD', slots, now + life, slot)
    call('PEXPIRE', slots, life + grace)
    answer[3] = held + 1
  end
end
return answer
