-- Takes back unused tokens of the running or the coming window, once per id, never more than were granted.
-- Who returns says goodbye: nothing is kept back for it any more.
-- KEYS: the ledger, the replicas. ARGV: holder, id (rising), window, tokens.
call('HDEL', KEYS[2], ARGV[1])
local entry, field = KEYS[1], 'to:' .. ARGV[1]
local id, window, tokens = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local of, granted, returned = string.match(call('HGET', entry, field) or '', '^(%d+):(%d+):(%d+)$')
if of == nil or tonumber(of) ~= window or id <= tonumber(returned) then return 0 end
local back = math.min(tokens, tonumber(granted))
local running = tonumber(call('HGET', entry, 'window') or 0)
local name = nil
if window == running then name = 'taken' elseif window == running + 1 then name = 'ahead' end
if name == nil then return 0 end
local left = math.max(tonumber(call('HGET', entry, name) or 0) - back, 0)
call('HSET', entry, name, string.format('%.0f', left), field,
  string.format('%.0f:%.0f:%.0f', window, tonumber(granted) - back, id))
return back
