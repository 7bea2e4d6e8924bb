#!/usr/bin/env bash
# Installs what the tests need and the machine lacks, from the system's own package sources; what is there stays as
# it is. Without root it names what is missing and how to get it. `--full` adds what `test.sh --full` and the benchmark need.
source "$(dirname "$0")/lib.sh"

# command=Debian package
needed=(cc=gcc curl=curl python3=python3)
if [[ ${1:-} == --full ]]; then
    needed+=(shellcheck=shellcheck wrk=wrk haproxy=haproxy nginx=nginx valgrind=valgrind node=nodejs npm=npm)
    needed+=(dockerd=docker.io debootstrap=debootstrap promtool=prometheus chromium=chromium)
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

# Valkey for the tests of shared state. Where the system's release has no package of it, its backports have: the same
# sources with another suite, pinned low so that nothing else comes from there.
has_package() { apt-cache show "$1" >/dev/null 2>&1; }

# add_suite NAME SUITE: the main archive's sources once more, with another suite of packages.
add_suite() {
    local source=/etc/apt/sources.list.d/debian.sources list=/etc/apt/sources.list.d/headgate-$1.sources
    [[ -f $source ]] || return 1
    # The first paragraph of the file is the main archive.
    awk -v suite="$2" 'BEGIN { RS = ""; ORS = "\n\n" }
        NR == 1 { sub(/Suites:[^\n]*/, "Suites: " suite); print }' "$source" >"$list"
    printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$2" >"/etc/apt/preferences.d/headgate-$1"
    apt-get update -q
}

add_backports() {
    local codename
    codename=$(. /etc/os-release && say "${VERSION_CODENAME:-}")
    if [[ -z $codename ]] || ! add_suite backports "$codename-backports"; then
        die "no package valkey-server: please install Valkey 8 or later"
    fi
}

install_valkey() {
    has valkey-server && return
    has apt-get || die "please install Valkey 8 or later with your package manager"
    if ((EUID != 0)); then die "please run as root, or install Valkey 8 or later: sudo $0"; fi
    has_package valkey-server || add_backports
    install_packages valkey-server || die "could not install valkey-server"
}

# Compose and buildx are plugins; the release after this one has packages of them that run here, too.
docker_plugins() { docker compose version && docker buildx version; }

install_docker_plugins() {
    docker_plugins >/dev/null 2>&1 && return
    if ! has apt-get || ((EUID != 0)); then die "please install Docker Compose 2.24 or later, and buildx"; fi
    local suite='' candidate
    candidate=$(apt-cache policy docker-compose | sed -n 's/^ *Candidate: //p')
    if [[ $candidate != [2-9].* ]]; then
        suite=/trixie
        add_suite trixie trixie || die "please install Docker Compose 2.24 or later, and buildx"
    fi
    install_packages "docker-compose$suite" "docker-buildx$suite"
    docker_plugins >/dev/null 2>&1 || die "Docker Compose does not run"
}

# Programs and data that are nobody's package here; made once.
TOOLS=${HEADGATE_TOOLS:-$HOME/.cache/headgate}

install_go_tool() {
    [[ -x $TOOLS/bin/${1##*/} ]] && return
    has go || die "no go: Go 1.22 or later is needed to build ${1##*/}"
    say "setup: building ${1##*/} (once)"
    GOBIN=$TOOLS/bin go install "$1@$2" </dev/null
}

install_kubernetes_schemas() {
    [[ -d $TOOLS/schemas ]] && return
    local folder
    folder=$(mktemp -d)
    python3 -m pip download --quiet --no-deps --dest "$folder" kubernetes-validate==1.37.0
    python3 scripts/kubernetes-schemas.py "$folder"/*.whl "$folder/schemas"
    mkdir -p "$TOOLS" && mv "$folder/schemas" "$TOOLS/schemas"
    rm -rf "$folder"
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
install_valkey
if [[ ${1:-} == --full ]]; then
    install_cargo_tool cargo-deny
    install_docker_plugins
    install_go_tool helm.sh/helm/v3/cmd/helm v3.16.4
    install_go_tool github.com/yannh/kubeconform/cmd/kubeconform v0.6.7
    install_kubernetes_schemas
    if cargo +nightly --version >/dev/null 2>&1; then install_cargo_tool cargo-fuzz; fi
fi
say "setup: everything is there"
