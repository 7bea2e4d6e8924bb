#!/usr/bin/env bash
# All checks and tests. `--full` adds the release build, the demo, soak, real clients, the benchmark's smoke test, the
# operators' page in a browser, dashboards, Kubernetes, the image, the store on a Valkey in a container, docker compose,
# and fuzzing. Every stage runs, whatever the others did; the last lines tell the totals.
source "$(dirname "$0")/lib.sh"

full=${1:-}
[[ -z $full || $full == --full ]] || die "usage: $0 [--full]"
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
stages_passed=0
failed_stages=()
timeout_flags=(--kill-after=10)
# On a terminal, Ctrl-C must reach what a stage runs.
if [[ -t 1 ]]; then timeout_flags+=(--foreground); fi

# stage NAME SECONDS COMMAND...: runs it with a time limit, shows and keeps what it prints, counts how it ended.
stage() {
    local name=$1 limit=$2 start=$SECONDS
    shift 2
    printf '\n== %s\n' "$name"
    if timeout "${timeout_flags[@]}" "$limit" "$@" </dev/null 2>&1 | tee "$logs/${name// /-}"; then
        stages_passed=$((stages_passed + 1))
        say "== $name: ok in $((SECONDS - start)) s"
    else
        failed_stages+=("$name")
        say "== $name: FAILED after $((SECONDS - start)) s: $*"
    fi
}

# Adds up cargo's "test result:" lines and the clients' "N passed, N failed" over every log.
totals() {
    cat "$logs"/* | sed -nE 's/^test result: [a-zA-Z]+\. ([0-9]+) passed; ([0-9]+) failed; ([0-9]+) ignored.*/\1 \2 \3/p
        s/^([a-z]+: )?([0-9]+) passed, ([0-9]+) failed$/\2 \3 0/p' |
        awk '{ p += $1; f += $2; s += $3 } END { printf "%d passed, %d failed, %d skipped\n", p, f, s }'
}

if [[ -n $full ]]; then scripts/setup.sh --full; else scripts/setup.sh; fi
use_pinned_toolchain

stage "format" 120 cargo fmt --all --check
stage "scripts" 60 scripts/check-scripts.sh
stage "links" 60 python3 scripts/check-links.py
stage "clippy" 1500 cargo clippy --workspace --all-targets --locked -- -D warnings
stage "tests" 1800 cargo test --workspace --locked --no-fail-fast
if [[ -n $full ]]; then
    stage "documentation" 600 env RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
    stage "dependencies" 300 scripts/dependencies.sh
    stage "release build" 1500 scripts/release-build.sh --workspace --bins
    stage "demo" 120 scripts/demo-smoke.sh
    stage "soak" 1800 scripts/soak.sh
    stage "real clients" 600 tests/clients/run.sh
    stage "bench smoke" 300 python3 bench/run.py --quick
    stage "instructions" 600 bench/callgrind.sh --check
    stage "page" 180 tests/page/run.sh
    stage "dashboards" 60 scripts/dashboards.sh
    stage "kubernetes" 120 scripts/k8s.sh --check
    stage "image" 2400 scripts/image.sh
    stage "containers" 1500 tests/containers/run.sh
    stage "compose" 600 tests/compose/run.sh
    stage "fuzz" 900 scripts/fuzz.sh 20
fi

# A long output is often kept only by its end: what failed is told again there.
for name in "${failed_stages[@]}"; do
    printf '\n== %s: how it failed\n' "$name"
    grep -aE '^(test .*FAILED|thread .* panicked|FAILED|error)' "$logs/${name// /-}" | cut -c1-300 | tail -20 || true
    tail -25 "$logs/${name// /-}" | cut -c1-300
done

printf '\ntests: %s\n' "$(totals)"
say "stages: $stages_passed passed, ${#failed_stages[@]} failed"
((${#failed_stages[@]} == 0)) || die "failed:$(printf ' [%s]' "${failed_stages[@]}")"
