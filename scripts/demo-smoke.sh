#!/usr/bin/env bash
# The first thing a newcomer does: the demo starts without a file or a network, answers, and stops cleanly.
source "$(dirname "$0")/lib.sh"
[[ -x $HEADGATE_PROXY ]] || die "no $HEADGATE_PROXY: cargo build --release --bin headgate-proxy"

read -r server_port metrics_port < <(free_ports 2)
log=$(mktemp)
SERVER_PORT=$server_port METRICS_PORT=$metrics_port "$HEADGATE_PROXY" --demo >"$log" 2>&1 &
proxy=$!
trap 'kill "$proxy" 2>/dev/null || true; rm -f "$log"' EXIT

failed() { cat "$log"; die "$*"; }

wait_until 60 curl -fsS "http://127.0.0.1:$server_port/ready" || failed "the demo is not ready after a minute"
for id in $(seq 1 20); do
    answer=$(curl -sS --max-time 20 -H 'content-type: application/json' "http://127.0.0.1:$server_port/demo" \
        -d "{\"jsonrpc\":\"2.0\",\"id\":$id,\"method\":\"eth_blockNumber\",\"params\":[]}")
    [[ $answer == *"\"id\":$id"* && $answer == *'"result":"0x'* ]] || failed "call $id got: $answer"
done
metrics=$(curl -fsS "http://127.0.0.1:$metrics_port/metrics") || failed "no metrics"
[[ $metrics == *$'\nheadgate_http_requests_total'* ]] || failed "no requests counted"

kill -TERM "$proxy"
status=0
wait "$proxy" || status=$?
((status == 0)) || failed "the demo ended with status $status after SIGTERM"
say "20 calls answered, stopped cleanly"
