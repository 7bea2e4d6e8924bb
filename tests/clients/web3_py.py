"""web3.py through the proxy. Arguments: the URLs of the chain with one node, with two, and with providers that die."""

import asyncio
import json
import sys
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from web3 import AsyncWeb3, HTTPProvider, Web3, WebSocketProvider
from web3.exceptions import ContractLogicError

CONTRACT = json.loads((Path(__file__).parent / "echo.json").read_text())
# A published development key of a local node; the other clients use others.
KEY = "0x5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a"
RECIPIENT = Web3.to_checksum_address("0x000000000000000000000000000000000000beef")

url, _, mortal_url = sys.argv[1:]
# Four blocks a second, a death every two seconds, and three to die: each has died twice.
MORTAL_BLOCKS = 50
w3 = Web3(HTTPProvider(url, exception_retry_configuration=None, request_kwargs={"timeout": 20}))
account = w3.eth.account.from_key(KEY)
failures = 0


def check(what: str) -> Callable[[Callable[[], None]], None]:
    """Runs the function at once and prints `ok`, or `FAILED` with the reason. run.sh counts the lines."""

    def run(body: Callable[[], None]) -> None:
        global failures
        try:
            body()
            print(f"ok web3.py: {what}")
        except Exception:
            failures += 1
            print(f"FAILED web3.py: {what}: {traceback.format_exc()}")

    return run


def send(transaction: dict) -> dict:
    """Signs, sends, and waits for the receipt."""
    transaction |= {"from": account.address, "nonce": w3.eth.get_transaction_count(account.address), "chainId": 31337}
    transaction.setdefault("gas", 1_000_000)
    transaction |= {"maxFeePerGas": w3.to_wei(20, "gwei"), "maxPriorityFeePerGas": 1}
    raw = account.sign_transaction(transaction).raw_transaction
    return w3.eth.wait_for_transaction_receipt(w3.eth.send_raw_transaction(raw), timeout=30, poll_latency=0.05)


def until(ask: Callable[[], list]) -> list:
    """Asks until there is something, at most for a while."""
    deadline = time.monotonic() + 60
    while not (found := ask()) and time.monotonic() < deadline:
        time.sleep(0.02)
    return found


def deploy_echo():
    receipt = send({"data": CONTRACT["bytecode"], "value": 0})
    return w3.eth.contract(address=receipt["contractAddress"], abi=CONTRACT["abi"])


@check("reads")
def _() -> None:
    assert w3.is_connected()
    assert w3.eth.chain_id == 31337
    assert w3.eth.block_number >= 0
    assert w3.eth.get_block(0)["number"] == 0
    assert w3.eth.get_balance(account.address) > w3.to_wei(1000, "ether")


@check("a hundred reads from ten threads")
def _() -> None:
    with ThreadPoolExecutor(10) as pool:
        assert set(pool.map(lambda _: w3.eth.get_block(0)["number"], range(100))) == {0}


@check("a signed transfer and its receipt")
def _() -> None:
    before = w3.eth.get_balance(RECIPIENT)
    assert send({"to": RECIPIENT, "value": 5})["status"] == 1
    assert w3.eth.get_balance(RECIPIENT) == before + 5


echo = deploy_echo()


@check("a contract written and read")
def _() -> None:
    for word in (41, 42):
        data = echo.encode_abi("say", [word])
        assert send({"to": echo.address, "data": data, "value": 0})["status"] == 1
    assert echo.functions.last().call() == 42


@check("a revert keeps its reason")
def _() -> None:
    try:
        echo.functions.say(0).call({"from": account.address})
    except ContractLogicError as error:
        assert "nothing to say" in str(error), error
    else:
        raise AssertionError("it did not revert")


@check("logs")
def _() -> None:
    logs = echo.events.Said().get_logs(from_block=0)
    assert [log["args"]["word"] for log in logs] == [41, 42]


@check("a batch, each answer to its own question")
def _() -> None:
    head = w3.eth.block_number
    with w3.batch_requests() as batch:
        for number in range(head + 1):
            batch.add(w3.eth.get_block(number))
        blocks = batch.execute()
    assert [block["number"] for block in blocks] == list(range(head + 1))


@check("an event filter")
def _() -> None:
    seen = echo.events.Said().create_filter(from_block="latest")
    seen.get_new_entries()
    send({"to": echo.address, "data": echo.encode_abi("say", [51]), "value": 0})
    # A node tells its filters of a block after those who ask for the receipt.
    entries = until(seen.get_new_entries)
    assert [log["args"]["word"] for log in entries] == [51]
    assert seen.get_new_entries() == []


async def follow() -> tuple[list[int], list[str], list[str]]:
    """Blocks, transactions of logs and pending transactions over one socket, until each has come."""
    blocks, logs, pending = [], [], []
    async with AsyncWeb3(WebSocketProvider(url.replace("http", "ws"))) as socket:
        kinds = {
            await socket.eth.subscribe("newHeads"): lambda head: blocks.append(head["number"]),
            await socket.eth.subscribe("logs", {"address": echo.address}): lambda log: logs.append(log["transactionHash"].hex()),
            await socket.eth.subscribe("newPendingTransactions"): lambda hash: pending.append(hash.hex()),
        }
        assert await socket.eth.chain_id == 31337
        say = {"to": echo.address, "data": echo.encode_abi("say", [52]), "value": 0}
        for _ in range(2):
            await asyncio.to_thread(send, say)
        async for told in socket.socket.process_subscriptions():
            kinds[told["subscription"]](told["result"])
            if len(blocks) > 1 and logs and pending:
                break
    return blocks, logs, pending


@check("subscriptions over a WebSocket")
def _() -> None:
    blocks, logs, _ = asyncio.run(asyncio.wait_for(follow(), 60))
    assert blocks == list(range(blocks[0], blocks[0] + len(blocks))), blocks
    assert len(set(logs)) == len(logs), logs


async def outlive() -> tuple[list[int], list[tuple[int, int]], list[tuple[int, int]]]:
    """Heads and logs (block and index) over one socket while providers die, and the logs there are between the first
    and the last block, which may have come in part."""
    heads, logs = [], []
    # The socket's end would be an exception here.
    async with AsyncWeb3(WebSocketProvider(mortal_url.replace("http", "ws"))) as socket:
        kinds = {
            await socket.eth.subscribe("newHeads"): lambda head: heads.append(head["number"]),
            await socket.eth.subscribe("logs", {}): lambda log: logs.append((log["blockNumber"], log["logIndex"])),
        }
        async for told in socket.socket.process_subscriptions():
            kinds[told["subscription"]](told["result"])
            if len(heads) >= MORTAL_BLOCKS and len(logs) >= MORTAL_BLOCKS / 2:
                break
        first, last = logs[0][0] + 1, logs[-1][0] - 1
        there = await socket.eth.get_logs({"fromBlock": first, "toBlock": last})
    logs = [log for log in logs if first <= log[0] <= last]
    return heads, logs, [(log["blockNumber"], log["logIndex"]) for log in there]


@check("subscriptions outlive their providers")
def _() -> None:
    heads, logs, there = asyncio.run(asyncio.wait_for(outlive(), 60))
    assert heads == list(range(heads[0], heads[0] + len(heads))), heads
    assert logs == there, (logs, there)


sys.exit(1 if failures else 0)
