-- Gives back what was charged and not spent, where its window still runs; once per id, if there is one.
-- KEYS: windows. ARGV: holder, id (rising; "" for none), when it was charged in ms, requests, units, grace in ms; then of
-- each window its name, unit ("r" or "u"), period in ms and limit.
local windows, field = KEYS[1], 'credited:' .. ARGV[1]
local id, charged = tonumber(ARGV[2]), tonumber(ARGV[3])
local back = { r = tonumber(ARGV[4]), u = tonumber(ARGV[5]) }
if call('EXISTS', windows) == 0 then return 0 end
if id then
  if id <= tonumber(call('HGET', windows, field) or 0) then return 0 end
  call('HSET', windows, field, string.format('%.0f', id))
end
for i = 7, #ARGV, 4 do
  local number, used = string.match(call('HGET', windows, ARGV[i]) or '', '^(%d+):(%d+)$')
  if number and tonumber(number) == math.floor(charged / tonumber(ARGV[i + 2])) then
    local left = math.max(tonumber(used) - back[ARGV[i + 1]], 0)
    call('HSET', windows, ARGV[i], string.format('%.0f:%.0f', tonumber(number), left))
  end
end
return 1
