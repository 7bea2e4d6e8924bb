# shellcheck shell=bash
# What the scripts share: where we are, how they speak, how a stage is run and counted. Sourced, never run.

set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck disable=SC2034 # read by the scripts that source this file
TARGET=${CARGO_TARGET_DIR:-target}
# shellcheck disable=SC2034
HEADGATE_PROXY=${HEADGATE_PROXY:-$TARGET/release/headgate-proxy}

say() { printf '%s\n' "$*"; }
die() { say "error: $*" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# A machine whose stable toolchain is the pinned release need not have it a second time under its number.
use_pinned_toolchain() {
    local pinned
    pinned=$(sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
    has cargo || die "no cargo: install Rust $pinned with rustup"
    cargo --version >/dev/null 2>&1 && return
    if [[ $(rustc +stable --version 2>/dev/null) == "rustc $pinned "* ]]; then
        export RUSTUP_TOOLCHAIN=stable
    else
        die "Rust $pinned is missing: rustup toolchain install $pinned"
    fi
}

# What the compiler is told about every release build that is measured, soaked or shipped (the Dockerfile says the same). Flags from
# outside stay; functions that changed since the recording are compiled as ever.
use_recorded_runs() {
    export RUSTFLAGS="${RUSTFLAGS:+$RUSTFLAGS }-Cprofile-use=$PWD/bench/release.profdata -Cllvm-args=-no-pgo-warn-mismatch"
}

# Waits until the command succeeds, at most the given seconds.
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

# free_ports COUNT: so many ports that nobody listens on at the moment, on one line, no two the same. Which ones, the benchmark
# decides for all scripts.
free_ports() {
    PYTHONPATH=bench python3 -c '
import sys
from programs import free_port

print(*(free_port() for _ in range(int(sys.argv[1]))))
' "$1"
}
free_port() { free_ports 1; }

# The Docker daemon, started if there is none and we may; it ends with the script that started it.
start_docker() {
    has docker || die "no docker: scripts/setup.sh --full"
    docker info >/dev/null 2>&1 && return
    if ((EUID != 0)) || ! PATH=$PATH:/usr/sbin has dockerd; then die "the Docker daemon does not answer: start it"; fi
    mkdir -p "$TARGET"
    PATH=$PATH:/usr/sbin:/sbin dockerd >"$TARGET/dockerd.log" 2>&1 &
    DOCKERD=$!
    trap 'kill "$DOCKERD" 2>/dev/null && wait "$DOCKERD" 2>/dev/null || true' EXIT
    wait_until 30 docker info || { tail -5 "$TARGET/dockerd.log"; die "the Docker daemon does not start"; }
}
