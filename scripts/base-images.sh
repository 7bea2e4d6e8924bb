#!/usr/bin/env bash
# The images that ours stand on. Where a registry can be reached they are pulled; where none can, they are made under
# the same names from the system's own packages. Images that are there already stay as they are. Given names, only those.
source "$(dirname "$0")/lib.sh"

# What an image is tagged with here is what the Dockerfile and docker-compose.yml ask for.
SLIM=debian:bookworm-slim
RUST=rust:1.95-slim-bookworm
MADE=("$SLIM" "$RUST" valkey/valkey:8.0 haproxy:2.6 prom/prometheus:v2.42.0)

here() { docker image inspect "$1" >/dev/null 2>&1; }
pulled() { timeout 120 docker pull --quiet "$1" >/dev/null 2>&1; }

# A folder with a minimal system, without documentation and package lists.
make_slim() {
    has debootstrap || die "no debootstrap: scripts/setup.sh --full"
    local root mirror
    root=$(mktemp -d)
    # shellcheck disable=SC2064 # the folder of now
    trap "rm -rf '$root'" RETURN
    mirror=$(sed -n 's/^URIs: *//p' /etc/apt/sources.list.d/debian.sources 2>/dev/null | head -1)
    debootstrap --variant=minbase bookworm "$root/system" ${mirror:+"$mirror"} >"$root/log" 2>&1 ||
        { tail -5 "$root/log"; die "debootstrap failed"; }
    local system=$root/system
    rm -rf "$system"/usr/share/{doc,man,locale,info}/* "$system"/var/lib/apt/lists/* "$system"/var/cache/*
    tar -C "$system" --exclude="./dev/*" --exclude="./proc/*" --exclude="./sys/*" -c . | docker import --change 'CMD ["bash"]' - "$SLIM" >/dev/null
}

# build NAME [FOLDER]: an image from the Dockerfile on standard input and what is in the folder.
build() { docker buildx build --quiet --load --tag "$1" --file - "${2:-$empty}" >/dev/null; }

# The compiler of this machine, in the place of the one that the image of the same name has.
make_rust() {
    use_pinned_toolchain
    local sysroot tools=$empty/tools
    sysroot=$(rustc --print sysroot)
    mkdir -p "$tools/bin" "$tools/lib"
    cp "$sysroot"/bin/{cargo,rustc} "$tools/bin/"
    cp -r "$sysroot"/lib/*.so* "$sysroot/lib/rustlib" "$tools/lib/"
    build "$RUST" "$tools" <<DOCKERFILE
FROM $SLIM
RUN apt-get update -q && apt-get install -yq --no-install-recommends gcc libc6-dev ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY . /usr/local/
ENV CARGO_HOME=/usr/local/cargo
DOCKERFILE
}

# Valkey is in the backports of this release.
make_valkey() {
    build valkey/valkey:8.0 <<DOCKERFILE
FROM $SLIM
RUN sed 's/ bookworm / bookworm-backports /' /etc/apt/sources.list >/etc/apt/sources.list.d/backports.list \
    && apt-get update -q && apt-get install -yq --no-install-recommends valkey-server valkey-tools \
    && rm -rf /var/lib/apt/lists/* && mkdir -p /data && chown valkey:valkey /data
WORKDIR /data
USER valkey
CMD ["valkey-server", "--protected-mode", "no"]
DOCKERFILE
}

make_haproxy() {
    build haproxy:2.6 <<DOCKERFILE
FROM $SLIM
RUN apt-get update -q && apt-get install -yq --no-install-recommends haproxy && rm -rf /var/lib/apt/lists/*
USER haproxy
STOPSIGNAL SIGUSR1
CMD ["haproxy", "-W", "-db", "-f", "/usr/local/etc/haproxy/haproxy.cfg"]
DOCKERFILE
}

make_prometheus() {
    build prom/prometheus:v2.42.0 <<DOCKERFILE
FROM $SLIM
RUN apt-get update -q && apt-get install -yq --no-install-recommends prometheus && rm -rf /var/lib/apt/lists/* \
    && mkdir -p /prometheus && chown nobody /prometheus
USER nobody
WORKDIR /prometheus
ENTRYPOINT ["/usr/bin/prometheus"]
CMD ["--config.file=/etc/prometheus/prometheus.yml", "--storage.tsdb.path=/prometheus"]
DOCKERFILE
}

make() {
    case $1 in
        "$SLIM") make_slim ;;
        "$RUST") make_rust ;;
        valkey/*) make_valkey ;;
        haproxy:*) make_haproxy ;;
        prom/*) make_prometheus ;;
        *) die "unknown image $1: there are ${MADE[*]}" ;;
    esac
}

has docker || die "no docker: scripts/setup.sh --full"
docker info >/dev/null 2>&1 || die "the Docker daemon does not answer: start dockerd"
empty=$(mktemp -d)
trap 'rm -rf "$empty"' EXIT
reachable=unknown
wanted=("$@")
if (($# == 0)); then wanted=("${MADE[@]}"); fi
for image in "${wanted[@]}"; do
    if here "$image"; then continue; fi
    # One refusal is enough to know: no registry, then none for the others.
    if [[ $reachable != no ]]; then
        if pulled "$image"; then reachable=yes; say "base images: pulled $image"; continue; fi
        reachable=no
    fi
    # The others stand on it.
    if [[ $image != "$SLIM" ]] && ! here "$SLIM"; then make_slim; fi
    make "$image"
    say "base images: made $image"
done
say "base images: ${#wanted[@]} are there"
