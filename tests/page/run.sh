#!/usr/bin/env bash
# The operators' page in headless Chromium. With PICTURES=<folder> it leaves screenshots there to look at.
source "$(dirname "$0")/../../scripts/lib.sh"
here=tests/page
[[ -x $HEADGATE_PROXY ]] || die "no $HEADGATE_PROXY: cargo build --release --bin headgate-proxy"
HEADGATE_PROXY=$(realpath "$HEADGATE_PROXY")
CHROMIUM=$(command -v chromium || command -v chromium-browser || command -v google-chrome) ||
    die "no Chromium: scripts/setup.sh --full"
export HEADGATE_PROXY CHROMIUM

if [[ ! $here/node_modules/.package-lock.json -nt $here/package-lock.json ]]; then
    (cd $here && npm ci --ignore-scripts --no-fund --no-audit)
fi
exec timeout 150 node $here/check.mjs
