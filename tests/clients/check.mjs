// One named check: prints `ok NAME`, or `FAILED NAME` with the reason. run.sh counts the lines.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";

export const contract = JSON.parse(readFileSync(new URL("echo.json", import.meta.url)));

// The published development keys of a local node, one per client so that their nonces never meet.
const keys = {
  viem: "0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
  ethers: "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
};
// Four blocks a second, a death every two seconds, and three to die: each has died twice.
const MORTAL_BLOCKS = 50;
export const recipient = "0x000000000000000000000000000000000000bEEF";

// Waits for what must come; asks again after each event of the loop, at most for a while.
export async function until(holds) {
  const deadline = Date.now() + 60_000;
  while (!(await holds())) {
    if (Date.now() > deadline) throw new Error("it did not come within a minute");
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

// Follows a chain whose providers die in turn, until each has died: heads and logs (block and index) must come in order,
// each once, and no socket may end. `read` tells which logs there are between two blocks.
export async function follow(heads, logs, ends, read) {
  const deadline = Date.now() + 60_000;
  while (heads.length < MORTAL_BLOCKS || logs.length < MORTAL_BLOCKS / 2) {
    assert.deepEqual(ends, [], "a socket that ended");
    if (Date.now() > deadline) throw new Error(`only ${heads.length} heads and ${logs.length} logs within 60 s`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const [told, listed] = [[...heads], [...logs]];
  assert.deepEqual(told, told.map((_, index) => told[0] + index), "heads in order, each once");
  // The first and the last block may have come in part.
  const [from, to] = [listed[0][0] + 1, listed.at(-1)[0] - 1];
  assert.deepEqual(listed.filter(([block]) => from <= block && block <= to), await read(from, to), "logs in order, each once");
}

export function client(name) {
  const check = async (what, body) => {
    try {
      await body();
      console.log(`ok ${name}: ${what}`);
    } catch (error) {
      console.log(`FAILED ${name}: ${what}: ${error?.stack ?? error}`);
      process.exitCode = 1;
    }
  };
  return { check, key: keys[name] };
}
