#!/usr/bin/env bash
# docker compose for real: everything comes up in order, serves through HAProxy, and a client notices neither a rolling
# update, nor a restart of the checker, nor the loss of Valkey. Then Prometheus is asked every query of the dashboards
# and alerts. Needs the image: scripts/image.sh.
source "$(dirname "$0")/../../scripts/lib.sh"
here=tests/compose
export HEADGATE_IMAGE=${HEADGATE_IMAGE:-headgate:local} COMPOSE_PROJECT_NAME=headgate-test COMPOSE_PROFILES=demo
# Whatever ports are free: nothing else on this machine is in the way.
read -r HEADGATE_PORT PROMETHEUS_PORT GRAFANA_PORT < <(free_ports 3)
# The providers are simulated ones everywhere: a test asks nobody outside.
export ENDPOINTS_FILE=configs/endpoints-demo.json
export HEADGATE_PORT PROMETHEUS_PORT GRAFANA_PORT PAGE_PORTS=0 DEMO_PAGE_PORTS=0
CONNECTIONS=4
out=$(mktemp -d)
client=

start_docker
clean_up() {
    if [[ -n $client ]]; then kill "$client" 2>/dev/null || true; fi
    docker compose down --volumes --timeout 5 >/dev/null 2>&1 || true
    rm -rf "$out"
    if [[ -n ${DOCKERD:-} ]]; then kill "$DOCKERD"; wait "$DOCKERD" 2>/dev/null || true; fi
}
trap clean_up EXIT

# Without Grafana where its image cannot be had: its files are checked, nothing of it is needed here.
services=(valkey checker proxy haproxy prometheus providers demo-checker demo-proxy load)
if docker image inspect grafana/grafana:11.6.0 >/dev/null 2>&1; then services+=(grafana); fi

failed() { docker compose ps --all; docker compose logs --tail 30 --no-color 2>&1 | cut -c1-300; die "$*"; }
running() { docker compose ps --quiet --status running "$1"; }
healthy() { [[ $(docker inspect --format '{{.State.Health.Status}}' "$1") == healthy ]]; }
call() {
    curl -sS --max-time 20 "http://127.0.0.1:$HEADGATE_PORT/$1" -H 'content-type: application/json' \
        -d "{\"jsonrpc\":\"2.0\",\"id\":$2,\"method\":\"eth_blockNumber\",\"params\":[]}"
}
serves() { [[ $(call demo 1) == *'"result":"0x'* ]]; }

start_client() {
    python3 $here/client.py 127.0.0.1 "$HEADGATE_PORT" /demo "$CONNECTIONS" >"$out/client" 2>&1 &
    client=$!
}

# stop_client MOST WHAT: ends it; of its calls at most MOST may have failed.
stop_client() {
    kill -TERM "$client"
    wait "$client" || true
    client=
    python3 - "$out/client" "$1" "$2" <<'PYTHON' || failed "a client noticed: $2"
import json, sys
told = json.load(open(sys.argv[1]))
print(f"{sys.argv[3]}: {told['calls']} calls, {len(told['failures'])} failed")
for failure in told["failures"][:10]:
    print("  ", failure)
sys.exit(len(told["failures"]) > int(sys.argv[2]))
PYTHON
}

# A new pair of proxies beside the old one, then the old ones leave one after the other.
rolling_update() {
    local old id
    mapfile -t old < <(running demo-proxy)
    docker compose up --detach --no-deps --no-recreate --scale "demo-proxy=$((${#old[@]} + 2))" demo-proxy >/dev/null 2>&1
    for id in $(running demo-proxy); do wait_until 60 healthy "$id" || failed "a new proxy is not healthy"; done
    for id in "${old[@]}"; do
        docker stop --time 20 "$id" >/dev/null
        [[ $(docker inspect --format '{{.State.ExitCode}}' "$id") == 0 ]] || failed "a proxy did not end cleanly"
        docker rm "$id" >/dev/null
    done
    [[ $(running demo-proxy | wc -l) == 2 ]] || failed "not two proxies after the update"
}

# How long one more proxy takes from its start until it says ready, in milliseconds.
start_to_ready() {
    local id address
    docker compose up --detach --no-deps --no-recreate --scale demo-proxy=3 demo-proxy >/dev/null 2>&1
    id=$(docker ps --latest --quiet)
    address=$(docker inspect --format '{{range .NetworkSettings.Networks}}{{.IPAddress}} {{end}}' "$id" | cut -d' ' -f1)
    wait_until 60 curl -fsS "http://$address:8080/ready" || failed "another proxy is not ready"
    docker inspect --format '{{.State.StartedAt}}' "$id" |
        python3 -c 'import datetime, sys, time
began = datetime.datetime.fromisoformat(sys.stdin.read().strip()[:26].rstrip("Z") + "+00:00")
print(round((time.time() - began.timestamp()) * 1000))'
}

began=$SECONDS
docker compose up --detach --wait --wait-timeout 180 "${services[@]}" >"$out/up" 2>&1 || { tail -20 "$out/up"; failed "not everything is healthy"; }
say "up and healthy after $((SECONDS - began)) s"
for id in $(seq 1 20); do
    answer=$(call demo "$id")
    [[ $answer == *"\"id\":$id"* && $answer == *'"result":"0x'* ]] || failed "call $id got: $answer"
done
socket=$(python3 $here/websocket.py 127.0.0.1 "$HEADGATE_PORT" /demo) || failed "no call over a WebSocket: $socket"
[[ $socket == *'"id":7'* && $socket == *'"result":"0x'* ]] || failed "over a WebSocket came: $socket"
took=$(start_to_ready)
say "start to ready: $took ms"
# Two seconds are the aim. A busy machine may need much more, to start the container and to ask; a proxy that waits for
# something needs ten.
((took < 9000)) || failed "from the start until ready took $took ms"

start_client
rolling_update
docker compose restart --timeout 10 demo-checker >/dev/null 2>&1
wait_until 60 healthy "$(running demo-checker)" || failed "the checker is not healthy after its restart"
stop_client 0 "rolling update, restart of the checker"

start_client
docker compose kill --signal KILL valkey >/dev/null 2>&1
for id in $(seq 1 40); do serves || failed "call $id without Valkey failed"; done
docker compose up --detach --no-deps --wait valkey >/dev/null 2>&1
for id in $(running demo-proxy); do wait_until 60 healthy "$id" || failed "a proxy is not healthy after Valkey's return"; done
stop_client 0 "Valkey killed and back"

# What was in flight at a proxy that is killed is lost with it; nothing else is.
start_client
wait_until 60 serves || failed "nobody serves"
docker kill --signal KILL "$(running demo-proxy | head -1)" >/dev/null
for id in $(seq 1 150); do call demo "$id" >/dev/null; done
stop_client "$CONNECTIONS" "a proxy killed"
docker compose up --detach --no-deps --wait --scale demo-proxy=2 demo-proxy >/dev/null 2>&1 || failed "a proxy does not come back"

# The demo's load has met ceilings by now, and moody was out.
prometheus=http://127.0.0.1:$PROMETHEUS_PORT
has_recovered() {
    [[ $(curl -fsS "$prometheus/api/v1/query" --data-urlencode 'query=headgate_recoveries_total > 0') == *'"value"'* ]]
}
wait_until 120 has_recovered || failed "nothing was parked and came back under the demo's load"
python3 $here/queries.py "$prometheus"
docker compose exec -T prometheus promtool check rules /etc/prometheus/alerts.yml | tail -2
