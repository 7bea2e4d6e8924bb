#!/usr/bin/env bash
# Licences, banned crates and sources of the whole dependency tree. Crates of other systems are fetched first: what is
# checked is the lock file, not what this system builds.
source "$(dirname "$0")/lib.sh"
use_pinned_toolchain

cargo fetch --locked --quiet
cargo deny --offline check --hide-inclusion-graph bans licenses sources
