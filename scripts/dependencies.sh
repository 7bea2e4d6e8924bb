#!/usr/bin/env bash
# Licences, banned crates and sources of the whole dependency tree, and of the tests in containers, which are a workspace
# of their own. Crates of other systems are fetched first: what is checked is the lock file, not what this system builds.
source "$(dirname "$0")/lib.sh"
use_pinned_toolchain

for manifest in Cargo.toml tests/containers/Cargo.toml; do
    cargo fetch --locked --quiet --manifest-path "$manifest"
    cargo deny --offline --manifest-path "$manifest" --config deny.toml check --hide-inclusion-graph bans licenses sources
done
