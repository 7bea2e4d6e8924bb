-- Grants a block of one static limit: subtracted here first, spent there after. The mirror of ledger::Ledger.
-- KEYS: the ledger, the replicas. ARGV: holder, which ("running" or "coming"), demand, waiting, window and number
-- spent alone ("" for none), proxies it knows of ("" for none), period in ms, amount, smooth ("1" or "").
local SILENT, GONE, LEAST, TENTHS = 2000, 600000, 200, 10
local entry, replicas = KEYS[1], KEYS[2]
local holder, which = ARGV[1], ARGV[2]
local demand, waiting = tonumber(ARGV[3]), tonumber(ARGV[4])
local alone_window, alone_spent = tonumber(ARGV[5]), tonumber(ARGV[6])
local knows, period, limit, smooth = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), ARGV[10] == '1'

local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function amount_of(whole, window)
  if not smooth then return whole end
  local tenth = window % TENTHS
  return math.floor((tenth + 1) * whole / TENTHS) - math.floor(tenth * whole / TENTHS)
end

-- Who is there, and what is kept back for those who are silent.
local live, silent = 1, {}
local heard = call('HGETALL', replicas)
for i = 1, #heard, 2 do
  if heard[i] ~= holder then
    local at, believes = string.match(heard[i + 1], '^(%d+):(%d+)$')
    if at == nil then return redis.error_reply('FOREIGN ' .. replicas) end
    local ago = now - tonumber(at)
    if ago >= GONE then
      call('HDEL', replicas, heard[i])
    else
      live = live + 1
      silent[#silent + 1] = { at = tonumber(at), believes = math.max(tonumber(believes), 1) }
    end
  end
end
call('HSET', replicas, holder, string.format('%.0f:%.0f', now, math.max(math.min(knows or live, live), 1)))
call('PEXPIRE', replicas, 2 * GONE)

local function withheld(amount, at)
  local sum = 0
  for _, other in ipairs(silent) do
    local ago = at - other.at
    if ago >= SILENT and ago < GONE then sum = sum + math.floor(amount / (2 * other.believes)) end
  end
  return math.min(sum, amount)
end

-- The running window; its number never goes back.
local held = call('HMGET', entry, 'window', 'taken', 'ahead', 'limit')
if held[1] == false and call('EXISTS', entry) == 1 then return redis.error_reply('FOREIGN ' .. entry) end
local window, taken, ahead = tonumber(held[1] or 0), tonumber(held[2] or 0), tonumber(held[3] or 0)
local whole = math.min(limit, tonumber(held[4] or limit))
local number = math.floor(now / period)
if number > window then
  if number == window + 1 then taken = ahead else taken = 0 end
  window, ahead, whole = number, 0, limit
end
local function charge(of, n)
  if of == window then taken = taken + n elseif of == window + 1 then ahead = ahead + n end
end
if alone_window then charge(alone_window, alone_spent) end

local of, starts = window, 0
if which == 'coming' then
  of = window + 1
  starts = math.max(of * period - now, 0)
end
local amount = amount_of(whole, of)
local spent = taken
if of ~= window then spent = ahead end
local remaining = math.max(math.max(amount - spent, 0) - withheld(amount, now + starts), 0)
local block = math.max(math.min(demand, math.floor(remaining / (2 * live))), math.floor(amount / LEAST), 1)
local tokens = math.min(block + waiting, remaining)
charge(of, tokens)

local field = 'to:' .. holder
if tokens > 0 then
  local last, granted, returned = string.match(call('HGET', entry, field) or '', '^(%d+):(%d+):(%d+)$')
  if tonumber(last) ~= of then granted = 0 end
  call('HSET', entry, field,
    string.format('%.0f:%.0f:%.0f', of, tonumber(granted or 0) + tokens, tonumber(returned or 0)))
end
call('HSET', entry, 'window', string.format('%.0f', window), 'taken', string.format('%.0f', taken),
  'ahead', string.format('%.0f', ahead), 'limit', string.format('%.0f', whole))
call('PEXPIRE', entry, 2 * period + 60000)
return { tokens, of, starts, math.max((of + 1) * period - now, 0), remaining - tokens, live }
