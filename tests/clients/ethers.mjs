// ethers through the proxy. Arguments: the URLs of the chain with one node, with two, and with providers that die.

import assert from "node:assert/strict";
import { Contract, ContractFactory, FetchRequest, JsonRpcProvider, NonceManager, Wallet, WebSocketProvider } from "ethers";
import { client, contract, follow, recipient, until } from "./check.mjs";

const { check, key } = client("ethers");
const [mainUrl, pairUrl, mortalUrl] = process.argv.slice(2);

// ethers batches what is asked in one tick, unless told otherwise.
const connect = (url, options) => {
  const request = new FetchRequest(url);
  request.timeout = 20_000;
  return new JsonRpcProvider(request, 31337, { staticNetwork: true, cacheTimeout: -1, pollingInterval: 50, ...options });
};
const single = connect(mainUrl, { batchMaxCount: 1 });
const batching = connect(mainUrl, { batchMaxCount: 100 });
const wallet = new NonceManager(new Wallet(key, single));
let echo;

await check("reads", async () => {
  assert.equal(await single.send("eth_chainId", []), "0x7a69");
  assert.ok((await single.getBlockNumber()) >= 0);
  assert.equal((await single.getBlock(0)).number, 0);
  assert.equal(await single.getCode(recipient), "0x");
});

await check("a signed transfer and its receipt", async () => {
  const before = await single.getBalance(recipient);
  const sent = await wallet.sendTransaction({ to: recipient, value: 9n });
  const receipt = await sent.wait(1, 30_000);
  assert.equal(receipt.status, 1);
  assert.equal(await single.getBalance(recipient), before + 9n);
});

await check("a contract deployed, written and read", async () => {
  const deployed = await new ContractFactory(contract.abi, contract.bytecode, wallet).deploy();
  await deployed.waitForDeployment();
  echo = new Contract(await deployed.getAddress(), contract.abi, wallet);
  for (const word of [31n, 32n]) await (await echo.say(word)).wait(1, 30_000);
  assert.equal(await echo.last(), 32n);
});

await check("a revert keeps its reason", async () => {
  await assert.rejects(echo.say.staticCall(0n), (error) => error.reason === "nothing to say");
});

await check("logs", async () => {
  const logs = await echo.queryFilter("Said", 0);
  assert.deepEqual(logs.map((log) => log.args.word), [31n, 32n]);
});

await check("a batch, each answer to its own question", async () => {
  const head = await single.getBlockNumber();
  const numbers = Array.from({ length: head + 1 }, (_, n) => n);
  const blocks = await Promise.all(numbers.map((number) => batching.getBlock(number)));
  assert.deepEqual(blocks.map((block) => block.number), numbers);
});

await check("a raw transaction sent twice is one transaction", async () => {
  const raw = await wallet.signTransaction(await wallet.populateTransaction({ to: recipient, value: 1n }));
  const before = await single.getBalance(recipient);
  const hash = await single.send("eth_sendRawTransaction", [raw]);
  await single.waitForTransaction(hash, 1, 30_000);
  await single.send("eth_sendRawTransaction", [raw]).catch(() => {});
  assert.equal(await single.getBalance(recipient), before + 1n);
  wallet.reset();
});

await check("filters live on the node that made them", async () => {
  const pair = connect(pairUrl, { batchMaxCount: 1 });
  const filters = [];
  for (let n = 0; n < 8; n += 1) filters.push(await pair.send("eth_newBlockFilter", []));
  assert.equal(new Set(filters).size, filters.length);
  for (const filter of [...filters, ...filters]) {
    assert.ok(Array.isArray(await pair.send("eth_getFilterChanges", [filter])));
  }
  for (const filter of filters) assert.equal(await pair.send("eth_uninstallFilter", [filter]), true);
});

await check("subscriptions over a WebSocket", async () => {
  const socket = new WebSocketProvider(mainUrl.replace("http", "ws"), 31337, { staticNetwork: true });
  const blocks = [], logs = [], pending = [];
  await socket.on("block", (number) => blocks.push(number));
  await socket.on({ address: await echo.getAddress() }, (log) => logs.push(log));
  await socket.on("pending", (hash) => pending.push(hash));
  assert.ok((await socket.getBlockNumber()) > 0);
  await until(async () => {
    await (await echo.say(33n)).wait(1, 30_000);
    return blocks.length > 1 && logs.length > 0 && pending.length > 0;
  });
  assert.deepEqual(blocks, blocks.map((_, index) => blocks[0] + index));
  await socket.destroy();
});

await check("subscriptions outlive their providers", async () => {
  const socket = new WebSocketProvider(mortalUrl.replace("http", "ws"), 1337, { staticNetwork: true });
  const heads = [], logs = [], ends = [];
  socket.websocket.addEventListener("close", (event) => ends.push(event.code));
  await socket.on("block", (number) => heads.push(number));
  await socket.on({ topics: [] }, (log) => logs.push([log.blockNumber, log.index]));
  const read = async (fromBlock, toBlock) => {
    const found = await socket.getLogs({ fromBlock, toBlock });
    return found.map((log) => [log.blockNumber, log.index]);
  };
  await follow(heads, logs, ends, read).finally(() => socket.destroy());
});

for (const provider of [single, batching]) provider.destroy();
