#!/usr/bin/env bash
# Installs what the tests need and the machine lacks, from the system's own package sources; what is there stays as
# it is. Without root it names what is missing and how to get it. `--full` adds what `test.sh --full` and the benchmark need.
source "$(dirname "$0")/lib.sh"

# command=Debian package
needed=(cc=gcc curl=curl python3=python3)
if [[ ${1:-} == --full ]]; then
    needed+=(shellcheck=shellcheck wrk=wrk haproxy=haproxy nginx=nginx valgrind=valgrind node=nodejs npm=npm)
fi

missing_packages() {
    local PATH=$PATH:/usr/sbin:/sbin entry
    for entry in "${needed[@]}"; do
        has "${entry%%=*}" || say "${entry#*=}"
    done
    if [[ ${1:-} == --full ]] && ! python3 -c 'import ensurepip, venv' 2>/dev/null; then say python3-venv; fi
}

# Packaged servers would start on their usual ports; we only want the programs.
without_starting_services() {
    local policy=/usr/sbin/policy-rc.d
    if [[ -e $policy ]]; then "$@"; return; fi
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
    local status=0
    "$@" || status=$?
    rm -f "$policy"
    return "$status"
}

apt_install() { DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null; }

install_packages() {
    say "setup: installing $*"
    without_starting_services apt_install "$@" && return
    say "setup: the package lists may be old, fetching them"
    apt-get update -q && without_starting_services apt_install "$@"
}

install_cargo_tool() {
    has "$1" && return
    say "setup: building $1 (a few minutes, once)"
    cargo install --locked --quiet "$1" </dev/null
}

use_pinned_toolchain
mapfile -t missing < <(missing_packages "$@")
if ((${#missing[@]} > 0)); then
    if ! has apt-get; then die "please install with your package manager: ${missing[*]}"; fi
    if ((EUID != 0)); then die "please run: sudo apt-get install ${missing[*]}"; fi
    install_packages "${missing[@]}" || die "could not install: ${missing[*]}"
fi
if [[ ${1:-} == --full ]]; then
    install_cargo_tool cargo-deny
    if cargo +nightly --version >/dev/null 2>&1; then install_cargo_tool cargo-fuzz; fi
fi
say "setup: everything is there"
