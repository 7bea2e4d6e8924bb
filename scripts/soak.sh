#!/usr/bin/env bash
# The soak tests: every `tests/soak.rs` of the workspace, in release, at full length.
source "$(dirname "$0")/lib.sh"
use_pinned_toolchain
use_recorded_runs

packages=()
for file in crates/*/tests/soak.rs services/*/tests/soak.rs; do
    [[ -e $file ]] || continue
    packages+=(-p "$(sed -n 's/^name = "\(.*\)"/\1/p' "${file%/tests/*}/Cargo.toml" | head -1)")
done
((${#packages[@]} > 0)) || die "no tests/soak.rs found"
HEADGATE_SOAK=1 cargo test --release --locked "${packages[@]}" --test soak
# Four proxies under load, hidden limits found by the steady law, and everything restarted at random. One after the other:
# they measure what they keep.
HEADGATE_SOAK=1 cargo test --release --locked -p headgate-proxy --test shared -- --test-threads 1 --nocapture load:: steady:: chaos::
