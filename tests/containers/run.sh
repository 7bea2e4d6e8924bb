#!/usr/bin/env bash
# The store's tests on a Valkey that runs in a container, in an image that is pulled or, without a registry, made from
# the system's packages.
source "$(dirname "$0")/../../scripts/lib.sh"
use_pinned_toolchain

start_docker
scripts/base-images.sh valkey/valkey:8.0
# Its own lock file, so its own target folder: the same folder would be built anew again and again.
export CARGO_TARGET_DIR=$TARGET/containers
cargo test --locked --manifest-path tests/containers/Cargo.toml -- --test-threads 4
