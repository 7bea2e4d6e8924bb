#!/usr/bin/env bash
# Instructions per proxied request, counted by callgrind: the figure that does not wobble with the machine's load. Runs a program
# for N and for 2N requests on one connection; the difference is free of what starting costs, and starting, which measures clocks and
# so takes more instructions on a busy machine, is not counted at all.
# BINARIES is a folder that has the programs; nothing is built then.
# `--check` fails when headgate-proxy's share over the bare proxy's is 10 % above the accepted one, `--accept` writes it down.
source "$(dirname "$0")/../scripts/lib.sh"

requests=2000
accepted=bench/instructions.txt
has valgrind || die "valgrind is not installed: ./scripts/setup.sh --full"
bin=${BINARIES:-$TARGET/release}
if [[ -z ${BINARIES:-} ]]; then
    # What is measured and no more, with the features that the whole workspace has.
    scripts/release-build.sh --workspace --bin headgate-proxy --bin bare --bin openloop --bin upstream
fi
work=$(mktemp -d)
processes=()
stop_all() {
    kill "${processes[@]}" 2>/dev/null || true
    wait "${processes[@]}" 2>/dev/null || true
    rm -rf "$work"
}
trap stop_all EXIT

answers() { curl -fsS "http://127.0.0.1:$1/main" -d '{"jsonrpc":"2.0","id":1,"method":"eth_getBalance","params":[]}'; }

# counted NAME REQUESTS PORT COMMAND...: the instructions of the whole run.
counted() {
    local name=$1 count=$2 port=$3 out=$work/$1-$2
    shift 3
    valgrind --tool=callgrind --callgrind-out-file="$out" "$@" >"$out.log" 2>&1 &
    local pid=$!
    processes+=("$pid")
    wait_until 60 answers "$port" || { cat "$out.log" >&2; die "$name does not answer"; }
    callgrind_control --zero "$pid" >>"$out.log"
    "$bin/openloop" --address "127.0.0.1:$port" --connections 1 --rate 0 --requests "$count" >"$out.load"
    kill -TERM "$pid"
    wait "$pid" || true
    grep -q '"errors":0' "$out.load" || { cat "$out.load" >&2; die "$name lost answers"; }
    sed -n 's/^summary: \([0-9]*\).*/\1/p; s/^totals: \([0-9]*\).*/\1/p' "$out" | tail -1
}

# per_request NAME COMMAND...: sets `per`. Where the command has @, the port comes. The profiles stay in bench/out.
per_request() {
    local name=$1 port once twice
    shift
    port=$(free_port)
    once=$(SERVER_PORT=$port counted "$name" "$requests" "$port" "${@//@/$port}")
    port=$(free_port)
    twice=$(SERVER_PORT=$port counted "$name" $((2 * requests)) "$port" "${@//@/$port}")
    cp "$work/$name-$requests" "bench/out/callgrind.$name.once"
    cp "$work/$name-$((2 * requests))" "bench/out/callgrind.$name"
    per=$(((twice - once) / requests))
    say "$name: $per instructions per request"
}

mkdir -p bench/out
upstreams=("$(free_port)" "$(free_port)" "$(free_port)")
"$bin/upstream" --ports "$(IFS=,; say "${upstreams[*]}")" &
processes+=($!)
wait_until 10 answers "${upstreams[0]}" || die "the upstream does not answer"

endpoint() { printf '"e%d": {"provider": "bench", "role": "primary", "http_url": "http://127.0.0.1:%d"}' "$1" "$1"; }
printf '{"main": {%s, %s, %s}}\n' "$(endpoint "${upstreams[0]}")" "$(endpoint "${upstreams[1]}")" "$(endpoint "${upstreams[2]}")" \
    >"$work/endpoints.json"
METRICS_PORT=$(free_port)
export METRICS_PORT LOG_LEVEL=warn HEALTH_CHECK_INTERVAL=0 WORKER_THREADS=1

per_request bare "$bin/bare" @ "${upstreams[@]/#/127.0.0.1:}"
bare=$per
per_request headgate-proxy "$bin/headgate-proxy" --config-file "$work/endpoints.json"
ratio=$((100 * per / bare))
say "headgate-proxy needs $ratio % of the bare proxy's"
say "headgate-proxy's instructions per request, by function:"
python3 bench/profile.py bench/out/callgrind.headgate-proxy{.once,} "$requests" 20

case ${1:-} in
--accept) say "$ratio" >$accepted ;;
--check)
    [[ -s $accepted ]] || die "there is no accepted figure to compare with: $0 --accept writes one"
    limit=$(($(<$accepted) * 110 / 100))
    ((ratio <= limit)) || die "more than 10 % above the accepted $(<$accepted) %: justify it and run $0 --accept, or win it back"
    ;;
esac
