-- Before every script: a command whose error names the key, if what is there is not ours.
local function call(command, key, ...)
  local reply = redis.pcall(command, key, ...)
  if type(reply) == 'table' and reply.err then
    if string.find(reply.err, 'WRONGTYPE', 1, true) then error({ err = 'FOREIGN ' .. key }) end
    error(reply)
  end
  return reply
end
