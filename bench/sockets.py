"""What WebSockets cost: a head for each of many clients beside a tunnel, and calls on a socket beside calls over HTTP."""

import json
import statistics
import subprocess
from pathlib import Path

from programs import CORES, Program, Scenario, free_port, haproxy_command, start_upstream

FOLLOWERS = 1000
# The most that one process is meant to serve on a chain; descriptors end near 20,000.
CROWD = 8000
HEAD_BYTES = 600
GOALS = {"head_to_haproxy": 3.0, "socket_to_http": 1.3, "crowd_last_ms": 100.0, "crowd_kb_per_client": 20.0}


def measure(options, binaries: Path, work: Path) -> dict:
    """All rounds. Within a round both programs and both ways follow each other, so that they meet the same machine."""
    followers, crowd = (50, 500) if options.quick else (FOLLOWERS, CROWD)
    running: list[Program] = []
    try:
        upstream, ports = start_upstream(binaries, Scenario("sockets"), work)
        running.append(upstream)
        fast, slow = (provider(binaries, every_ms, work) for every_ms in (100, 1000))
        running += [fast, slow]
        headgate = start_headgate(binaries, ports[0], {"main": fast.port, "crowd": slow.port}, work)
        running.append(headgate)
        haproxy = start_haproxy(fast.port, work)
        running.append(haproxy)
        # First, in a process that has just started: later its memory would be what others left.
        full = follow(headgate, binaries, "/crowd", crowd, max(int(options.seconds * 2), 3))
        heads = max(int(options.seconds * 10), 5)
        rounds = [
            {
                "haproxy": follow(haproxy, binaries, "/main", followers, heads),
                "headgate": follow(headgate, binaries, "/main", followers, heads),
                "socket": call(headgate, binaries, "socket", options.seconds),
                "http": call(headgate, binaries, "http", options.seconds),
            }
            for _ in range(options.rounds)
        ]
    finally:
        for program in reversed(running):
            program.stop()
    summary = summarise(rounds, full)
    print_table(options, followers, summary)
    text = {"name": "sockets", "followers": followers, "crowd": crowd, "head_bytes": HEAD_BYTES}
    return {"scenario": text, "summary": summary, "rounds": rounds, "crowd": full, "problems": problems(rounds, full)}


def provider(binaries: Path, every_ms: int, work: Path) -> Program:
    port = free_port()
    command = [str(binaries / "sockets"), "provide", "--port", str(port), "--head-bytes", str(HEAD_BYTES)]
    program = Program(f"provider-{every_ms}", [*command, "--every-ms", str(every_ms)], port, work)
    program.wait_until_it_listens()
    return program


def start_headgate(binaries: Path, http: int, sockets: dict[str, int], work: Path) -> Program:
    endpoint = {"provider": "bench", "role": "primary", "http_url": f"http://127.0.0.1:{http}"}
    config = work / "sockets.json"
    config.write_text(json.dumps({
        chain: {"endpoint": endpoint | {"ws_url": f"ws://127.0.0.1:{port}"}} for chain, port in sockets.items()
    }))
    port = free_port()
    env = {"SERVER_PORT": str(port), "METRICS_PORT": str(free_port()), "LOG_LEVEL": "warn"}
    program = Program("headgate", [str(binaries / "headgate-proxy"), "--config-file", str(config)], port, work, env)
    program.wait_until_it_answers("/main")
    return program


def start_haproxy(upstream: int, work: Path) -> Program:
    port = free_port()
    program = Program("haproxy", haproxy_command(port, [upstream], work, "timeout tunnel 1h"), port, work)
    program.wait_until_it_listens()
    return program


def follow(program: Program, binaries: Path, path: str, clients: int, heads: int) -> dict:
    """So many clients get so many heads: what each message cost, and when the last client had a head."""
    command = [str(binaries / "sockets"), "follow", "--address", f"127.0.0.1:{program.port}", "--path", path]
    command += ["--clients", str(clients), "--threads", str(CORES), "--heads", str(heads)]
    before = program.resident_mb()
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as followers:
        if followers.stdout.readline() != "subscribed\n":
            raise SystemExit(f"{program.name} did not let {clients} clients subscribe:\n{program.log.read_text()[-4000:]}")
        used = program.cpu_seconds()
        followers.stdin.write("go\n")
        followers.stdin.flush()
        result = json.loads(followers.stdout.readline())
        used = program.cpu_seconds() - used
        kb = (program.resident_mb() - before) * 1024 / clients
    return result | {"cpu_us_per_message": used * 1e6 / max(result["messages"], 1), "kb_per_client": kb}


def call(program: Program, binaries: Path, over: str, seconds: float) -> dict:
    command = [str(binaries / "sockets"), "call", "--address", f"127.0.0.1:{program.port}"]
    command += ["--over", over, "--seconds", f"{seconds:.3f}"]
    used = program.cpu_seconds()
    output = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True).stdout
    used = program.cpu_seconds() - used
    calls = json.loads(output)["calls"]
    return {"calls": calls, "calls_per_second": calls / seconds, "cpu_us_per_call": used * 1e6 / max(calls, 1)}


def summarise(rounds: list[dict], crowd: dict) -> dict:
    def median(program: str, figure: str) -> float:
        return statistics.median(r[program][figure] for r in rounds)

    def ratio(program: str, reference: str, figure: str) -> float:
        return statistics.median(r[program][figure] / max(r[reference][figure], 1e-9) for r in rounds)

    return {
        "haproxy": {"us_per_head": median("haproxy", "cpu_us_per_message")},
        "headgate": {
            "us_per_head": median("headgate", "cpu_us_per_message"),
            "us_per_call": {way: median(way, "cpu_us_per_call") for way in ("socket", "http")},
            "head_to_haproxy": ratio("headgate", "haproxy", "cpu_us_per_message"),
            "socket_to_http": ratio("socket", "http", "cpu_us_per_call"),
            "crowd_last_ms": crowd["last_client_us"]["p50"] / 1e3,
            "crowd_last_ms_max": crowd["last_client_us"]["max"] / 1e3,
            "crowd_us_per_head": crowd["cpu_us_per_message"],
            "crowd_kb_per_client": crowd["kb_per_client"],
        },
    }


def problems(rounds: list[dict], crowd: dict) -> list[str]:
    """Heads that did not reach every client, each exactly once."""
    runs = [("crowd", crowd)] + [(name, r[name]) for r in rounds for name in ("haproxy", "headgate")]
    return [f"sockets: {name}: {run['incomplete']} heads did not reach everybody" for name, run in runs if run["incomplete"]]


def print_table(options, followers: int, summary: dict) -> None:
    ours, theirs = summary["headgate"], summary["haproxy"]
    print(f"\nsockets: medians of {options.rounds} rounds of {options.seconds:g} s; a head of {HEAD_BYTES} B for each of {followers} clients")
    rows = [
        ("haproxy's tunnel, µs per message", theirs["us_per_head"], None),
        ("headgate, µs per delivered head", ours["us_per_head"], None),
        ("  × haproxy", ours["head_to_haproxy"], GOALS["head_to_haproxy"]),
        ("headgate, µs per call over HTTP", ours["us_per_call"]["http"], None),
        ("headgate, µs per call on a socket", ours["us_per_call"]["socket"], None),
        ("  × HTTP", ours["socket_to_http"], GOALS["socket_to_http"]),
        ("the crowd: last client has a head after, ms", ours["crowd_last_ms"], GOALS["crowd_last_ms"]),
        ("  at most, ms", ours["crowd_last_ms_max"], None),
        ("the crowd: µs per delivered head", ours["crowd_us_per_head"], None),
        ("the crowd: KB per client", ours["crowd_kb_per_client"], GOALS["crowd_kb_per_client"]),
    ]
    for name, figure, goal in rows:
        print(f"{name:46}{figure:>9.2f}" + (f"   goal {goal:g}" if goal else ""), flush=True)
