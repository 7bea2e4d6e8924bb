-- Closed-loop load: every request has its own id and address. wrk counts answers that are not 2xx; whether an answer belongs
-- to its request is the open-loop generator's check. Arguments: path, chains, batch, 1 to close after each request.

local path, chains, batch, headers
local number = 0

function init(args)
   path, chains, batch = args[1], tonumber(args[2]), tonumber(args[3])
   headers = { ["Content-Type"] = "application/json" }
   if args[4] == "1" then headers["Connection"] = "close" end
end

local function call()
   number = number + 1
   return string.format('{"jsonrpc":"2.0","id":%d,"method":"eth_getBalance","params":["0x%040x","latest"]}', number, number)
end

function request()
   local body
   if batch == 1 then
      body = call()
   else
      local calls = {}
      for i = 1, batch do calls[i] = call() end
      body = "[" .. table.concat(calls, ",") .. "]"
   end
   return wrk.format("POST", (path:gsub("%%", number % chains)), headers, body)
end

function done(summary, latency, requests)
   local e = summary.errors
   io.write(string.format(
      '\nRESULT {"requests":%d,"seconds":%.6f,"errors":%d,"bytes":%d,"p50_us":%d,"p99_us":%d}\n',
      summary.requests, summary.duration / 1e6, e.connect + e.read + e.write + e.status + e.timeout,
      summary.bytes, latency:percentile(50), latency:percentile(99)))
end
