#!/usr/bin/env bash
# Builds in release, as everything that is measured, soaked or shipped is built: the compiler is told how the proxies ran
# under the benchmark's load (bench/README.md, "Recorded runs"). Arguments: `cargo build`'s.
source "$(dirname "$0")/lib.sh"
use_pinned_toolchain
use_recorded_runs
cargo build --release --locked "$@"
