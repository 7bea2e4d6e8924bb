#!/usr/bin/env python3
"""Measures that no request waits for Valkey: the p50 through one proxy while Valkey is well, slow, silent and gone.

The states follow each other within every round, at one rate, with the same proxy, so that they meet the same machine. The
last one is the first one again: what it differs by is what the machine differs by.
"""

import argparse
import statistics
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from programs import Program, Scenario, free_port, headgate, start_upstream, start_valkey
from relay import Relay
from run import build, closed_loop, open_loop

SCENARIO = Scenario("valkey", valkey=True)
STATES = {"well": {}, "200 ms slow": {"delay_ms": 200}, "silent": {"silent": True}, "gone": {"gone": True}, "well again": {}}
AWAY = ["silent", "gone"]
# More than this, in per cent, and requests waited.
MOST = 5.0
PATIENCE_S = 30


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=4, help="of each state in each round")
    options = parser.parse_args()
    binaries = build(["headgate"])
    running: list = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            upstream, ports = start_upstream(binaries, SCENARIO, work)
            running.append(upstream)
            valkey = start_valkey(work)
            running.append(valkey)
            relay = Relay(valkey.port)
            running.append(relay)
            (work / "valkey.port").write_text(str(relay.port))
            port = free_port()
            command, env = headgate(port, ports, SCENARIO, binaries, work)
            proxy = Program("headgate", command, port, work, env)
            running.append(proxy)
            proxy.wait_until_it_answers(SCENARIO.path)
            rate = closed_loop(proxy, SCENARIO, 2)["rate"] / 2
            metrics = int(env["METRICS_PORT"])
            rounds = [
                one_round(proxy, metrics, relay, rate, options.seconds, binaries) for _ in range(options.rounds)
            ]
        finally:
            for program in reversed(running):
                program.stop()
    return report(rounds, rate, options.seconds)


def one_round(proxy: Program, metrics: int, relay: Relay, rate: float, seconds: float, binaries: Path) -> dict[str, dict]:
    results = {}
    for state, how in STATES.items():
        relay.become(**how)
        wait_until_degraded(metrics, state in AWAY)
        results[state] = open_loop(proxy, SCENARIO, max(int(rate * seconds), 1), rate, binaries)
    return results


def wait_until_degraded(metrics: int, wanted: bool) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while degraded(metrics) != wanted:
        if time.monotonic() > deadline:
            raise SystemExit(f"headgate_store_degraded does not become {int(wanted)}")
        time.sleep(0.05)


def degraded(metrics: int) -> bool:
    with urllib.request.urlopen(f"http://127.0.0.1:{metrics}/metrics", timeout=5) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line for line in lines if line.startswith("headgate_store_degraded ")).split()[1]) == 1


def report(rounds: list[dict[str, dict]], rate: float, seconds: float) -> int:
    print(f"\nmedians of {len(rounds)} rounds of {seconds:g} s at {rate:.0f} requests/s, open loop")
    print(f"{'valkey':14}{'p50 ms':>10}{'p99 ms':>10}{'errors':>10}{'p50 to well':>14}")
    failed = False
    for state in STATES:
        p50, p99 = (statistics.median(r[state][figure] for r in rounds) / 1e3 for figure in ["p50_us", "p99_us"])
        change = 100 * (statistics.median(r[state]["p50_us"] / r["well"]["p50_us"] for r in rounds) - 1)
        errors = sum(r[state]["errors"] for r in rounds)
        failed |= errors > 0 or change >= MOST
        print(f"{state:14}{p50:10.3f}{p99:10.3f}{errors:10}{change:+13.1f}%")
    print(f"{'NOT MET' if failed else 'met'}: no errors, and the p50 rises by less than {MOST:g} %")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
