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

# Waits until the command succeeds, at most the given seconds.
wait_until() {
    local deadline=$((SECONDS + $1))
    shift
    until "$@" >/dev/null 2>&1; do
        ((SECONDS < deadline)) || return 1
        sleep 0.1
    done
}

# A port that nobody listens on at the moment.
free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}
