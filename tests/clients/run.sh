#!/usr/bin/env bash
# Real clients through the proxy in front of real nodes. On `main` the proxy has one node, a provider that refuses everything and one that is gone;
# on `pair` two nodes that share nothing, so that an id made by one is unknown to the other; on `mortal` three simulated
# providers of which another one dies every two seconds.
source "$(dirname "$0")/../../scripts/lib.sh"
here=tests/clients
DYING_PROVIDERS=${DYING_PROVIDERS:-$(dirname "$HEADGATE_PROXY")/dying-providers}
for program in "$HEADGATE_PROXY" "$DYING_PROVIDERS"; do
    [[ -x $program ]] || die "no $program: cargo build --workspace --release --bins"
done

install_clients() {
    if [[ ! $here/node_modules/.package-lock.json -nt $here/package-lock.json ]]; then
        (cd $here && npm ci --ignore-scripts --no-fund --no-audit)
    fi
    if [[ ! $here/.venv/done -nt $here/requirements.txt ]]; then
        python3 -m venv --clear $here/.venv
        $here/.venv/bin/pip install --quiet --no-deps --requirement $here/requirements.txt
        touch $here/.venv/done
    fi
}

# The npm package's own launcher would start a second process that outlives it.
anvil_binary() {
    local found
    found=$(compgen -G "$here/node_modules/@foundry-rs/anvil-*/bin/anvil") || die "no anvil for this platform"
    say "$found"
}

processes=()
out=$(mktemp -d)
stop_all() {
    kill "${processes[@]}" 2>/dev/null || true
    wait "${processes[@]}" 2>/dev/null || true
    rm -rf "$out"
}
trap stop_all EXIT

start() {
    local name=$1
    shift
    "$@" >"$out/$name.log" 2>&1 &
    processes+=($!)
}

answers() { curl -fsS -H 'content-type: application/json' "$1" -d '{"jsonrpc":"2.0","id":1,"method":"eth_chainId","params":[]}'; }
# A node at block zero counts as one that has not begun to follow its chain.
mine_a_block() { curl -fsS -H 'content-type: application/json' "$1" -d '{"jsonrpc":"2.0","id":1,"method":"evm_mine","params":[]}' >/dev/null; }
refuses() { [[ $(curl -s -o /dev/null -w '%{http_code}' "$1" -d '{}') == 429 ]]; }

install_clients
read -r NODE_A_PORT NODE_B_PORT LIMITED_PORT GONE_PORT SERVER_PORT METRICS_PORT MORTAL_A_PORT MORTAL_B_PORT MORTAL_C_PORT \
    < <(free_ports 9)
export MORTAL_A_PORT MORTAL_B_PORT MORTAL_C_PORT
export NODE_A_PORT NODE_B_PORT LIMITED_PORT GONE_PORT SERVER_PORT METRICS_PORT
anvil=$(anvil_binary)

# A block for each transaction, and one each second: as on a real network, what waits for the next block sees one.
for node in a:$NODE_A_PORT b:$NODE_B_PORT; do
    start "node-${node%:*}" "$anvil" --port "${node#*:}" --silent --mixed-mining --block-time 1
done
start mortals "$DYING_PROVIDERS" "$MORTAL_A_PORT" "$MORTAL_B_PORT" "$MORTAL_C_PORT"
start limited node $here/limited.mjs "$LIMITED_PORT"
wait_until 60 answers "http://127.0.0.1:$NODE_A_PORT" || die "the first node does not answer"
wait_until 60 answers "http://127.0.0.1:$NODE_B_PORT" || die "the second node does not answer"
mine_a_block "http://127.0.0.1:$NODE_A_PORT"
mine_a_block "http://127.0.0.1:$NODE_B_PORT"
wait_until 60 refuses "http://127.0.0.1:$LIMITED_PORT" || die "the limited provider does not answer"

# Who was down is looked at again each second: what dies every two seconds would else be taken for dead most of the time.
start proxy env EPHEMERAL_CHECKS_INTERVAL=1 "$HEADGATE_PROXY" --config-file $here/endpoints.json
base=http://127.0.0.1:$SERVER_PORT
wait_until 60 curl -fsS "$base/ready" || { cat "$out/proxy.log"; die "the proxy is not ready after a minute"; }

for client in "node $here/viem.mjs" "node $here/ethers.mjs" "$here/.venv/bin/python $here/web3_py.py"; do
    # shellcheck disable=SC2086 # a command and its argument
    timeout 180 $client "$base/main" "$base/pair" "$base/mortal" 2>&1 | tee -a "$out/results" || say "FAILED ${client##*/}: ended with an error" >>"$out/ended"
done

passed=$(grep -c '^ok ' "$out/results" || true)
failed=$(grep -c '^FAILED ' "$out/results" || true)
# A client that died without naming a failed check counts as one.
if [[ -e $out/ended ]] && ((failed == 0)); then failed=1; fi
if ((failed > 0)); then cat "$out/proxy.log"; fi
say "clients: $passed passed, $failed failed"
# Once more, last: who reads the end of a long log sees what it was.
cat "$out/ended" 2>/dev/null || true
grep '^FAILED ' "$out/results" || true
((failed == 0 && passed > 0))
