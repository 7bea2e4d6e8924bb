#!/usr/bin/env bash
# Records how headgate-proxy and the bare proxy run under the benchmark's loads, for the compiler: bench/release.profdata. Functions
# that never ran are left out of it, so that what no load reaches (TLS, HTTP/2) is compiled as ever. About ten minutes on two cores.
source "$(dirname "$0")/../scripts/lib.sh"
use_pinned_toolchain

scenarios=(plain connections-1 batch-10 answer-100k new-connections limited chains-1000 clients valkey sockets)
work=$(realpath -m "$TARGET")/recorded
tools=(upstream openloop sockets)
merge=$(rustc --print sysroot)/lib/rustlib/$(rustc -vV | sed -n 's/^host: //p')/bin/llvm-profdata
has "$merge" || die "no llvm-profdata: rustup component add llvm-tools"

scripts/release-build.sh --workspace "${tools[@]/#/--bin=}"
# What the build itself runs is counted, too, and of no use.
LLVM_PROFILE_FILE=/dev/null RUSTFLAGS=-Cprofile-generate \
    cargo build --release --locked --workspace --bin headgate-proxy --bin bare --target-dir "$work"
rm -rf "$work/runs" "$work/programs"
mkdir -p "$work/programs"
cp "${tools[@]/#/$TARGET/release/}" "$work"/release/{headgate-proxy,bare} "$work/programs/"
LLVM_PROFILE_FILE=$work/runs/%p.profraw python3 bench/run.py "${scenarios[@]}" \
    --rounds 1 --seconds 3 --programs bare,headgate --binaries "$work/programs" --json "$work/runs.json"
"$merge" merge --sparse --output bench/release.profdata "$work"/runs/*.profraw
say "bench/release.profdata: $(($(stat -c %s bench/release.profdata) / 1024)) KB"
