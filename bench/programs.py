"""The measured programs: how each is configured and started, and what the system says it used."""

import hashlib
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
CORES = os.cpu_count() or 1
TICKS = os.sysconf("SC_CLK_TCK")
START_LIMIT_S = 60
# The key of the only client, where clients are told apart.
CLIENT_KEY = "bench-key"


@dataclass(frozen=True)
class Scenario:
    """What the programs are put through. One dimension differs from `plain` in each of the others."""

    name: str
    endpoints: int = 3
    chains: int = 1
    answer_bytes: int = 200
    batch: int = 1
    connections: int = 32
    close: bool = False
    limited_every: int = 0
    # What headgate does beyond proxying; the others are as in `plain`.
    valkey: bool = False
    clients: bool = False

    @property
    def path(self) -> str:
        chain = "/main" if self.chains == 1 else "/chain-%"
        return f"{chain}/{CLIENT_KEY}" if self.clients else chain

    def text(self) -> str:
        parts = [f"endpoints {self.endpoints}", f"chains {self.chains}", f"result {self.answer_bytes} B"]
        parts += [f"batch {self.batch}", f"connections {self.connections}"]
        parts += ["a new connection per request"] if self.close else []
        parts += ["a tenth of the answers limited"] if self.limited_every else []
        parts += ["use shared over valkey"] if self.valkey else []
        parts += ["every request by a client with limits"] if self.clients else []
        return ", ".join(parts)


unused_ports = iter(random.sample(range(16384, 32768), 2000))


def free_port() -> int:
    """One that nobody listens on, never the same twice. It lies below those that the system gives to outgoing connections."""
    for port in unused_ports:
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no port is free")


class Program:
    """A running program. `work` keeps its configuration and what it printed."""

    def __init__(self, name: str, command: list[str], port: int, work: Path, env: dict[str, str] | None = None):
        self.name, self.port = name, port
        self.log = work / f"{name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=os.environ | (env or {}),
            )

    def pids(self) -> list[int]:
        """The process and its children (nginx works in children)."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [self.process.pid, *map(int, children)]

    def cpu_seconds(self) -> float:
        return sum(cpu_ticks(pid) for pid in self.pids()) / TICKS

    def resident_mb(self) -> float:
        return sum(status_kb(pid, "VmRSS") for pid in self.pids()) / 1024

    def wait_until_it_answers(self, path: str) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while not answers(f"http://127.0.0.1:{self.port}{path.replace('%', '0')}"):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{self.name} does not answer:\n{self.log.read_text()[-4000:]}")
            time.sleep(0.05)

    def wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_LIMIT_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            except OSError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit(f"{self.name} does not listen:\n{self.log.read_text()[-4000:]}") from None
                time.sleep(0.05)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def cpu_ticks(pid: int) -> int:
    """User and system time of all its threads, also those that ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12])


def status_kb(pid: int, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1])
    raise KeyError(field)


def answers(url: str) -> bool:
    body = b'{"jsonrpc":"2.0","id":7,"method":"eth_getBalance","params":["0x00","latest"]}'
    request = urllib.request.Request(url, body, {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=2) as response:
            return response.status == 200 and json.load(response)["id"] == 7
    except (OSError, ValueError, KeyError):
        return False


def idle_connection_kb(program: Program, scenario: Scenario, count: int = 1000) -> float | None:
    """Resident memory per client connection that waits after one answer. Asked only where all answers are short and good."""
    if scenario.answer_bytes > 1000 or scenario.limited_every:
        return None
    body = '{"jsonrpc":"2.0","id":7,"method":"eth_getBalance","params":["0x00","latest"]}'
    head = f"POST {scenario.path.replace('%', '0')} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    request = f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()
    before = program.resident_mb()
    clients = []
    try:
        for _ in range(count):
            clients.append(socket.create_connection(("127.0.0.1", program.port), timeout=10))
            clients[-1].sendall(request)
            if b" 200 " not in clients[-1].recv(65536)[:20]:
                raise SystemExit(f"{program.name} refused one of {count} connections")
        return (program.resident_mb() - before) * 1024 / count
    finally:
        for client in clients:
            client.close()


def start_upstream(binaries: Path, scenario: Scenario, work: Path) -> tuple[Program, list[int]]:
    ports = [free_port() for _ in range(3)]
    command = [str(binaries / "upstream"), "--ports", ",".join(map(str, ports))]
    command += ["--answer-bytes", str(scenario.answer_bytes), "--limited-every", str(scenario.limited_every)]
    upstream = Program("upstream", command, ports[0], work)
    upstream.wait_until_it_answers("/")
    return upstream, ports


def start(name: str, binaries: Path, scenario: Scenario, ports: list[int], work: Path) -> Program:
    """Starts a program in front of as many endpoints as the scenario asks for, spread over the upstream's ports."""
    port = free_port()
    endpoints = [ports[n % len(ports)] for n in range(scenario.endpoints)]
    configure = {"haproxy": haproxy, "nginx": nginx, "bare": bare, "headgate": headgate, "before": headgate}[name]
    command, env = configure(port, endpoints, scenario, binaries, work)
    program = Program(name, command, port, work, env)
    program.wait_until_it_answers(scenario.path)
    return program


def bare(port: int, endpoints: list[int], _scenario: Scenario, binaries: Path, _work: Path):
    return [str(binaries / "bare"), str(port), *(f"127.0.0.1:{p}" for p in endpoints)], {}


def haproxy(port: int, endpoints: list[int], _scenario: Scenario, _binaries: Path, work: Path):
    return haproxy_command(port, endpoints, work, "http-reuse always"), {}


def haproxy_command(port: int, endpoints: list[int], work: Path, more: str) -> list[str]:
    """HAProxy on this port before these endpoints in turn; `more` is one line for its `defaults`."""
    servers = "\n".join(f"    server s{n} 127.0.0.1:{p}" for n, p in enumerate(endpoints))
    config = work / "haproxy.cfg"
    config.write_text(f"""
global
    nbthread {CORES}
    maxconn 8000
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s
    {more}
frontend in
    bind 127.0.0.1:{port}
    default_backend nodes
backend nodes
    balance roundrobin
{servers}
""")
    return [executable("haproxy"), "-db", "-f", str(config)]


def nginx(port: int, endpoints: list[int], _scenario: Scenario, _binaries: Path, work: Path):
    servers = "\n".join(f"        server 127.0.0.1:{p};" for p in endpoints)
    config = work / "nginx.conf"
    config.write_text(f"""
daemon off;
worker_processes {CORES};
pid {work}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 8192; }}
http {{
    access_log off;
    client_body_temp_path {work}/body;
    proxy_temp_path {work}/proxy;
    fastcgi_temp_path {work}/fastcgi;
    uwsgi_temp_path {work}/uwsgi;
    scgi_temp_path {work}/scgi;
    client_max_body_size 64m;
    client_body_buffer_size 64k;
    keepalive_requests 1000000000;
    upstream nodes {{
{servers}
        keepalive 256;
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location / {{
            proxy_pass http://nodes;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_max_temp_file_size 0;
        }}
    }}
}}
""")
    return [executable("nginx"), "-p", str(work), "-c", str(config)], {}


def headgate(port: int, endpoints: list[int], scenario: Scenario, binaries: Path, work: Path):
    chain = {
        f"endpoint-{n}": {"provider": "bench", "role": "primary", "http_url": f"http://127.0.0.1:{p}"}
        for n, p in enumerate(endpoints)
    }
    names = [scenario.path[1:].partition("/")[0].replace("%", str(n)) for n in range(scenario.chains)]
    config = work / "endpoints.json"
    config.write_text(json.dumps({name: chain for name in names}))
    env = {"SERVER_PORT": str(port), "METRICS_PORT": str(free_port()), "LOG_LEVEL": "warn"}
    if scenario.endpoints * scenario.chains > 30:
        # What many endpoints cost a request is the question, not what probing them costs.
        env["HEALTH_CHECK_INTERVAL"] = "0"
    if scenario.valkey:
        env |= {"VALKEY_HOST": "127.0.0.1", "VALKEY_PORT": str(valkey_port(work))}
    if scenario.clients:
        env["CLIENTS_FILE"] = str(clients_file(work))
    return [str(binaries / "headgate-proxy"), "--config-file", str(config)], env


def valkey_port(work: Path) -> int:
    """The port of the Valkey that `start_valkey` started for this scenario."""
    return int((work / "valkey.port").read_text())


def start_valkey(work: Path) -> Program:
    port = free_port()
    (work / "valkey.port").write_text(str(port))
    command = [executable("valkey-server"), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(work)]
    valkey = Program("valkey", command, port, work)
    valkey.wait_until_it_listens()
    return valkey


def clients_file(work: Path) -> Path:
    """One client with a limit in each dimension that a request is charged in, none of which is ever reached."""
    limits = {"rps": 1_000_000, "rpm": 60_000_000, "cu_per_second": 100_000_000}
    key = "sha256:" + hashlib.sha256(CLIENT_KEY.encode()).hexdigest()
    file = work / "clients.json"
    file.write_text(json.dumps({"clients": [{"id": "bench", "keys": [key], "limits": limits}]}))
    return file


def executable(name: str) -> str:
    found = shutil.which(name, path=os.environ["PATH"] + ":/usr/sbin:/sbin")
    if found is None:
        raise SystemExit(f"{name} is not installed: ./scripts/setup.sh --full")
    return found
