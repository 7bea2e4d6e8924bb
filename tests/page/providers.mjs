// Three providers for the page's test: `broken` fails calls, `limited` refuses them, `good` answers. All pass a probe.
import { createServer } from "node:http";

const answers = { eth_blockNumber: "0x64", eth_syncing: false };
const behave = {
  broken: () => [500, "down", {}],
  limited: () => [429, "rate limit exceeded", { "retry-after": "600" }],
  good: (call) => [200, JSON.stringify({ jsonrpc: "2.0", id: call.id, result: "0x1" }), { "content-type": "application/json" }],
};

function serve(name) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (part) => { body += part; });
    request.on("end", () => {
      const call = JSON.parse(body);
      const probed = { jsonrpc: "2.0", id: call.id, result: answers[call.method] };
      const [status, text, headers] = call.method in answers
        ? [200, JSON.stringify(probed), { "content-type": "application/json" }] : behave[name](call);
      response.writeHead(status, headers).end(text);
    });
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

/** The running servers, and an endpoints file in which they are asked in this order. */
export async function providers() {
  const tiers = { broken: "primary", limited: "fallback", good: "public" };
  const servers = [];
  const main = {};
  for (const [name, role] of Object.entries(tiers)) {
    const server = await serve(name);
    servers.push(server);
    main[name] = { provider: "test", role, type: "full", http_url: `http://127.0.0.1:${server.address().port}` };
  }
  return { servers, endpoints: { main } };
}
