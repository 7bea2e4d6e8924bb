// viem through the proxy. Arguments: the URLs of the chain with one node, with two, and with providers that die.

import assert from "node:assert/strict";
import { createPublicClient, createWalletClient, http, parseEther, webSocket } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { foundry } from "viem/chains";
import { client, contract, follow, recipient, until } from "./check.mjs";

const { check, key } = client("viem");
const [url, , mortalUrl] = process.argv.slice(2);
const account = privateKeyToAccount(key);
// The proxy does the retrying here: a failure that reaches the client is a failed check.
const options = { chain: foundry, transport: http(url, { retryCount: 0 }), pollingInterval: 50 };
const reader = createPublicClient(options);
const writer = createWalletClient({ ...options, account });
const echo = { abi: contract.abi, address: undefined };

await check("reads", async () => {
  assert.equal(await reader.getChainId(), foundry.id);
  assert.ok((await reader.getBlockNumber()) >= 0n);
  assert.ok((await reader.getBalance({ address: account.address })) > parseEther("1000"));
  const block = await reader.getBlock({ blockNumber: 0n });
  assert.equal(block.number, 0n);
});

await check("a hundred reads at once", async () => {
  const ids = await Promise.all(Array.from({ length: 100 }, () => reader.getChainId()));
  assert.deepEqual(new Set(ids), new Set([foundry.id]));
});

await check("a signed transfer and its receipt", async () => {
  const before = await reader.getBalance({ address: recipient });
  const hash = await writer.sendTransaction({ to: recipient, value: 7n });
  const receipt = await reader.waitForTransactionReceipt({ hash, timeout: 30_000 });
  assert.equal(receipt.status, "success");
  assert.equal(await reader.getBalance({ address: recipient }), before + 7n);
});

await check("a contract deployed, written and read", async () => {
  const hash = await writer.deployContract({ abi: contract.abi, bytecode: contract.bytecode });
  echo.address = (await reader.waitForTransactionReceipt({ hash, timeout: 30_000 })).contractAddress;
  for (const word of [11n, 12n, 13n]) {
    const said = await writer.writeContract({ ...echo, functionName: "say", args: [word] });
    await reader.waitForTransactionReceipt({ hash: said, timeout: 30_000 });
  }
  assert.equal(await reader.readContract({ ...echo, functionName: "last" }), 13n);
});

await check("a revert keeps its reason", async () => {
  const call = reader.simulateContract({ ...echo, functionName: "say", args: [0n], account });
  await assert.rejects(call, /nothing to say/);
});

await check("logs", async () => {
  const logs = await reader.getContractEvents({ ...echo, eventName: "Said", fromBlock: 0n });
  assert.deepEqual(logs.map((log) => log.args.word), [11n, 12n, 13n]);
});

await check("a batch, each answer to its own question", async () => {
  const batching = createPublicClient({ ...options, transport: http(url, { retryCount: 0, batch: { wait: 20 } }) });
  const heads = await batching.getBlockNumber();
  const numbers = Array.from({ length: Number(heads) + 1 }, (_, n) => BigInt(n));
  const blocks = await Promise.all(numbers.map((blockNumber) => batching.getBlock({ blockNumber })));
  assert.deepEqual(blocks.map((block) => block.number), numbers);
});

await check("a bad item fails alone in its batch", async () => {
  const batching = createPublicClient({ ...options, transport: http(url, { retryCount: 0, batch: { wait: 20 } }) });
  const [id, unknown] = await Promise.allSettled([
    batching.getChainId(),
    batching.request({ method: "eth_thereIsNoSuchMethod" }),
  ]);
  assert.equal(id.value, foundry.id);
  assert.equal(unknown.status, "rejected");
});

await check("an event filter", async () => {
  const filter = await reader.createContractEventFilter({ ...echo, eventName: "Said" });
  const hash = await writer.writeContract({ ...echo, functionName: "say", args: [21n] });
  await reader.waitForTransactionReceipt({ hash, timeout: 30_000 });
  // A node tells its filters of a block after those who ask for the receipt.
  const changes = [];
  await until(async () => changes.push(...(await reader.getFilterChanges({ filter }))) > 0);
  assert.deepEqual(changes.map((log) => log.args.word), [21n]);
  assert.deepEqual(await reader.getFilterChanges({ filter }), []);
  assert.equal(await reader.uninstallFilter({ filter }), true);
});

await check("subscriptions over a WebSocket", async () => {
  const transport = webSocket(url.replace("http", "ws"), { retryCount: 0 });
  const socket = createPublicClient({ ...options, transport });
  const blocks = [], words = [], pending = [];
  const onError = (error) => words.push(error);
  const ends = [
    // A block that viem is reading when the socket is closed comes as nothing; one that is missing shows as a hole.
    socket.watchBlocks({ onBlock: (block) => block && blocks.push(block.number), onError }),
    socket.watchContractEvent({ ...echo, eventName: "Said", onLogs: (logs) => words.push(...logs.map((log) => log.args.word)), onError }),
    socket.watchPendingTransactions({ onTransactions: (hashes) => pending.push(...hashes), onError }),
  ];
  // A call on the same socket is answered after what was asked before it.
  assert.equal(await socket.getChainId(), foundry.id);
  await until(async () => {
    const hash = await writer.writeContract({ ...echo, functionName: "say", args: [22n] });
    await reader.waitForTransactionReceipt({ hash, timeout: 30_000 });
    return blocks.length > 1 && words.length > 0 && pending.length > 0;
  });
  // viem asks for each block that it is told of, and hands them over as the answers come: sorted, each is there once.
  blocks.sort((a, b) => Number(a - b));
  assert.deepEqual(blocks, blocks.map((_, index) => blocks[0] + BigInt(index)));
  assert.deepEqual(new Set(words), new Set([22n]));
  ends.forEach((end) => end());
  (await transport({ chain: foundry }).value.getRpcClient()).close();
});

await check("subscriptions outlive their providers", async () => {
  const transport = webSocket(mortalUrl.replace("http", "ws"), { retryCount: 0, reconnect: false });
  const socket = createPublicClient({ transport });
  const heads = [], logs = [], ends = [];
  const client = await transport({}).value.getRpcClient();
  client.socket.addEventListener("close", (event) => ends.push(event.code));
  const onError = (error) => ends.push(error);
  await socket.transport.subscribe({ params: ["newHeads"], onData: ({ result }) => heads.push(Number(result.number)), onError });
  socket.watchEvent({ onLogs: (told) => logs.push(...told.map((log) => [Number(log.blockNumber), log.logIndex])), onError });
  const read = async (from, to) => {
    const found = await socket.getLogs({ fromBlock: BigInt(from), toBlock: BigInt(to) });
    return found.map((log) => [Number(log.blockNumber), log.logIndex]);
  };
  await follow(heads, logs, ends, read).finally(() => client.close());
});
