#!/usr/bin/env bash
# The whole table in about twelve minutes: more rounds where a goal is a ratio to others, fewer where it is one to `plain` or there
# is none. Options go to each run; BEFORE is a folder with another build's headgate-proxy, to be measured beside where ratios are.
source "$(dirname "$0")/../scripts/lib.sh"

failed=0

# run NAME ARGUMENTS...: a run that lost answers does not keep the others from being made.
run() {
    local name=$1
    shift
    python3 bench/run.py --json "bench/out/table-$name.json" "$@" || failed=1
}

mkdir -p bench/out
run ratios plain new-connections --rounds 4 --seconds 3 ${BEFORE:+--before "$BEFORE"} "$@"
run dimensions endpoints-30 endpoints-300 chains-1000 answer-100k answer-10m batch-10 batch-100 connections-1 connections-1000 limited \
    --rounds 2 --seconds 2 --programs haproxy,bare,headgate "$@"
run shared valkey clients clients-valkey --rounds 2 --seconds 2 --programs headgate "$@"
python3 bench/goals.py bench/out/table-{ratios,dimensions,shared}.json
exit "$failed"
