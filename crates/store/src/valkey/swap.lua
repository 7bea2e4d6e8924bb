-- Compare-and-set of one text, and word of it to the others.
-- KEYS: the text. ARGV: what is there ("" for nothing), what shall be, its life in ms, the channel, who writes.
local held = call('GET', KEYS[1]) or ''
if held ~= ARGV[1] then return { 0, held } end
call('SET', KEYS[1], ARGV[2], 'PX', ARGV[3])
redis.call('PUBLISH', ARGV[4], ARGV[5])
return { 1, '' }
