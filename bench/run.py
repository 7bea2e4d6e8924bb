#!/usr/bin/env python3
"""Measures what a proxied request costs, beside other proxies. How to read the table: bench/README.md."""

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import sockets
from goals import judged
from programs import CORES, HERE, Program, Scenario, executable, idle_connection_kb, start, start_upstream, start_valkey

ROOT = HERE.parent
PROGRAMS = ["haproxy", "nginx", "bare", "headgate"]
SCENARIOS = {
    scenario.name: scenario
    for scenario in [
        Scenario("plain"),
        Scenario("endpoints-30", endpoints=30),
        Scenario("endpoints-300", endpoints=300),
        Scenario("chains-1000", chains=1000),
        Scenario("answer-100k", answer_bytes=100_000),
        Scenario("answer-10m", answer_bytes=10_000_000, connections=8),
        Scenario("batch-10", batch=10),
        Scenario("batch-100", batch=100),
        Scenario("connections-1", connections=1),
        Scenario("connections-1000", connections=1000),
        Scenario("new-connections", close=True),
        # Every third answer of one of the three endpoints.
        Scenario("limited", limited_every=3),
        Scenario("valkey", valkey=True),
        Scenario("clients", clients=True),
        Scenario("clients-valkey", clients=True, valkey=True),
    ]
}
# Measured in a way of its own, by the module of this name.
SOCKETS = "sockets"
QUICK = ["plain", "batch-10", "answer-100k", "new-connections", SOCKETS]


def main() -> int:
    options = parse_options()
    allow_many_sockets()
    binaries = options.binaries or build(options.programs)
    results = [measure_named(name, options, binaries) for name in options.scenarios]
    write_json(results, options)
    print("\n".join(judged(results)))
    failed = [problem for result in results for problem in result["problems"]]
    for problem in failed:
        print(f"FAILED {problem}")
    checked = sum(len(result["summary"]) for result in results)
    print(f"bench: {checked - len(failed)} passed, {len(failed)} failed")
    return 1 if failed else 0


def parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("scenarios", nargs="*", help=f"default: plain; all, or of: {', '.join(SCENARIOS)}, {SOCKETS}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="of each program in each round, once closed and once open loop")
    parser.add_argument("--programs", type=lambda text: text.split(","), default=PROGRAMS, help=",".join(PROGRAMS))
    parser.add_argument("--binaries", type=Path, help="a folder that has the programs; nothing is built then")
    parser.add_argument("--before", type=Path, help="a folder with another build's headgate-proxy, measured beside")
    parser.add_argument("--quick", action="store_true", help="one short round: does every program answer everything?")
    parser.add_argument("--json", type=Path, help="default: bench/out/<time>.json")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.seconds = 1, 1
    options.scenarios = options.scenarios or (QUICK if options.quick else ["plain"])
    if options.scenarios == ["all"]:
        options.scenarios = [*SCENARIOS, SOCKETS]
    unknown = [n for n in options.scenarios if n not in [*SCENARIOS, SOCKETS]] + [n for n in options.programs if n not in PROGRAMS]
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}")
    if options.before:
        options.programs = [*options.programs, "before"]
    return options


def allow_many_sockets() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def build(programs: list[str]) -> Path:
    # The workspace's features, as the suite builds it: other packages would be other features, and everything built again.
    packages = ["--workspace", "--bin", "headgate-proxy"] if "headgate" in programs else ["-p", "bench"]
    needed = [word for name in ("bare", "openloop", "upstream", "sockets") for word in ("--bin", name)]
    subprocess.run(["scripts/release-build.sh", *packages, *needed], cwd=ROOT, check=True)
    return Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")).resolve() / "release"


def measure_named(name: str, options: argparse.Namespace, binaries: Path) -> dict:
    if name != SOCKETS:
        return measure(SCENARIOS[name], options, binaries)
    with tempfile.TemporaryDirectory() as folder:
        return sockets.measure(options, binaries, Path(folder))


def measure(scenario: Scenario, options: argparse.Namespace, binaries: Path) -> dict:
    """All rounds of one scenario. Within a round the programs follow each other, so that they meet the same machine."""
    running: list[Program] = []
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        try:
            upstream, ports = start_upstream(binaries, scenario, work)
            running.append(upstream)
            if scenario.valkey:
                running.append(start_valkey(work))
            programs = []
            for name in options.programs:
                folder_of = options.before if name == "before" else binaries
                programs.append(start(name, folder_of, scenario, ports, work))
                running.append(programs[-1])
            idle = {program.name: program.resident_mb() for program in programs}
            rate = min(closed_loop(program, scenario, min(options.seconds, 2))["rate"] for program in programs) / 2
            kb = {program.name: idle_connection_kb(program, scenario) for program in programs}
            rounds = [
                {program.name: measure_once(program, scenario, options.seconds, rate, binaries) for program in programs}
                for _ in range(options.rounds)
            ]
        finally:
            for program in reversed(running):
                program.stop()
    summary = summarise(rounds, idle, kb)
    print_table(scenario, options, rate, summary)
    return {
        "scenario": vars(scenario), "open_loop_rate": rate, "summary": summary, "rounds": rounds,
        "problems": problems(scenario, rounds),
    }


def measure_once(program: Program, scenario: Scenario, seconds: float, rate: float, binaries: Path) -> dict:
    before = program.cpu_seconds()
    closed = closed_loop(program, scenario, seconds)
    used = program.cpu_seconds() - before
    latency = open_loop(program, scenario, max(int(rate * seconds), 1), rate, binaries)
    return {
        "requests_per_second": closed["rate"],
        "cpu_us_per_request": used * 1e6 / max(closed["requests"], 1),
        "closed_loop": closed,
        "open_loop": latency,
        "p50_us": latency["p50_us"],
        "p99_us": latency["p99_us"],
        "errors": closed["errors"] + latency["errors"],
        "resident_mb": program.resident_mb(),
    }


def closed_loop(program: Program, scenario: Scenario, seconds: float) -> dict:
    command = [executable("wrk"), "-t1", f"-c{scenario.connections}", f"-d{max(seconds, 1):.0f}s", "--timeout", "20s"]
    command += ["-s", str(HERE / "wrk.lua"), f"http://127.0.0.1:{program.port}", "--"]
    command += [scenario.path, str(scenario.chains), str(scenario.batch), str(int(scenario.close))]
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    result = json.loads(output.rpartition("RESULT ")[2])
    return result | {"rate": result["requests"] / result["seconds"]}


def open_loop(program: Program, scenario: Scenario, requests: int, rate: float, binaries: Path) -> dict:
    command = [str(binaries / "openloop"), "--address", f"127.0.0.1:{program.port}", "--path", scenario.path]
    command += ["--chains", str(scenario.chains), "--batch", str(scenario.batch), "--requests", str(requests)]
    command += ["--rate", f"{rate:.3f}", "--connections", str(min(scenario.connections, 128))]
    command += ["--close"] * scenario.close
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    return json.loads(output)


def summarise(rounds: list[dict], idle: dict[str, float], kb: dict[str, float | None]) -> dict:
    """The median of each figure over the rounds, and of its ratio to the references within the same round."""
    summary = {}
    for name in rounds[0]:
        def median(figure: str) -> float:
            return statistics.median(r[name][figure] for r in rounds)

        def ratio(reference: str) -> float | None:
            if reference not in rounds[0]:
                return None
            return statistics.median(cost(r[name]) / max(cost(r[reference]), 1e-9) for r in rounds)

        def beside_haproxy(figure: str, compare: Callable[[float, float], float]) -> float | None:
            if "haproxy" not in rounds[0]:
                return None
            return statistics.median(compare(r[name][figure], r["haproxy"][figure]) for r in rounds)

        summary[name] = {
            figure: median(figure)
            for figure in ["requests_per_second", "cpu_us_per_request", "p50_us", "p99_us", "resident_mb"]
        } | {
            "errors": sum(r[name]["errors"] for r in rounds),
            "idle_mb": idle[name],
            "kb_per_idle_connection": kb[name],
            "cost_to_bare": ratio("bare"),
            "cost_to_haproxy": ratio("haproxy"),
            "throughput_to_haproxy": beside_haproxy("requests_per_second", lambda a, b: a / max(b, 1e-9)),
            "p99_ms_over_haproxy": beside_haproxy("p99_us", lambda a, b: (a - b) / 1e3),
        }
    return summary


def cost(figures: dict) -> float:
    return figures["cpu_us_per_request"]


def problems(scenario: Scenario, rounds: list[dict]) -> list[str]:
    """Lost or wrong answers. The references pass refusals on; headgate must not."""
    found = []
    for name in rounds[0]:
        errors = sum(r[name]["errors"] for r in rounds)
        texts = [r[name]["open_loop"]["first_error"] for r in rounds]
        first = next(filter(None, texts), "one that wrk counted")
        if errors and (name in ("headgate", "before") or not scenario.limited_every):
            found.append(f"{scenario.name}: {name}: {errors} errors, the first: {first}")
    return found


def print_table(scenario: Scenario, options: argparse.Namespace, rate: float, summary: dict) -> None:
    print(f"\n{scenario.name}: {scenario.text()}")
    print(f"medians of {options.rounds} rounds of {options.seconds:g} s; p50 and p99 at {rate:.0f} requests/s, open loop")
    columns = ["req/s", "× haproxy", "µs/req", "× bare", "× haproxy", "p50 ms", "p99 ms", "- haproxy", "errors", "idle MB"]
    columns += ["MB", "KB/conn"]
    print(" " * 10 + "".join(f"{column:>10}" for column in columns))
    for name, s in summary.items():
        cells = [f"{s['requests_per_second']:.0f}", number(s["throughput_to_haproxy"], 2)]
        cells += [f"{s['cpu_us_per_request']:.1f}", number(s["cost_to_bare"], 2), number(s["cost_to_haproxy"], 2)]
        cells += [f"{s['p50_us'] / 1e3:.3f}", f"{s['p99_us'] / 1e3:.3f}", number(s["p99_ms_over_haproxy"], 3)]
        cells += [str(s["errors"])]
        cells += [f"{s['idle_mb']:.1f}", f"{s['resident_mb']:.1f}", number(s["kb_per_idle_connection"], 1)]
        print(f"{name:10}" + "".join(f"{cell:>10}" for cell in cells), flush=True)


def number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


def write_json(results: list[dict], options: argparse.Namespace) -> None:
    file = options.json or HERE / "out" / time.strftime("%Y-%m-%dT%H-%M-%S.json")
    file.parent.mkdir(parents=True, exist_ok=True)
    machine = {"cores": CORES, "kernel": platform.release(), "processor": processor(), "date": time.strftime("%Y-%m-%d")}
    file.write_text(json.dumps({"machine": machine, "results": results}, indent=1) + "\n")
    print(f"\nwritten to {os.path.relpath(file)}")


def processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(": ")[2]
    return platform.machine()


if __name__ == "__main__":
    sys.exit(main())
