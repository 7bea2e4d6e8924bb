#!/usr/bin/env bash
# Fuzzes every target of `fuzz/` for the given number of seconds each (default 60), starting from the seeds.
source "$(dirname "$0")/lib.sh"

seconds=${1:-60}
[[ -d fuzz ]] || die "no fuzz/ here"
if ! cargo +nightly --version >/dev/null 2>&1 || ! has cargo-fuzz; then
    say "NOT FUZZED: this needs a nightly toolchain (rustup toolchain install nightly) and cargo-fuzz (cargo install cargo-fuzz)"
    exit 0
fi
export CARGO_TARGET_DIR=${FUZZ_TARGET_DIR:-$TARGET/fuzz}
mapfile -t fuzz_targets < <(cargo +nightly fuzz list)
((${#fuzz_targets[@]} > 0)) || die "no fuzz targets"
cargo +nightly fuzz build
for fuzz_target in "${fuzz_targets[@]}"; do
    say "fuzzing $fuzz_target for $seconds s"
    corpora=("fuzz/corpus/$fuzz_target")
    mkdir -p "${corpora[0]}"
    if [[ -d fuzz/seeds/$fuzz_target ]]; then corpora+=("fuzz/seeds/$fuzz_target"); fi
    cargo +nightly fuzz run "$fuzz_target" "${corpora[@]}" -- "-max_total_time=$seconds" -print_final_stats=1 -verbosity=0
done
say "${#fuzz_targets[@]} targets fuzzed"
