// A provider that has had enough: every answer is a 429. Argument: its port.

import { createServer } from "node:http";

const refusal = JSON.stringify({ jsonrpc: "2.0", id: null, error: { code: -32005, message: "rate limit exceeded" } });

createServer((request, response) => {
  request.resume().on("end", () => {
    response.writeHead(429, { "content-type": "application/json", "retry-after": "1" }).end(refusal);
  });
}).listen(Number(process.argv[2]), "127.0.0.1");
