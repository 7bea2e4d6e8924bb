#!/usr/bin/env bash
# Builds the image, as HEADGATE_IMAGE or headgate:local, and checks what is promised of it. The build reaches the package
# registry the way this machine does: with its certificates and its cargo configuration, which stay out of the image.
source "$(dirname "$0")/lib.sh"
IMAGE=${HEADGATE_IMAGE:-headgate:local}
# Beside its base, unpacked.
MOST_MEGABYTES=40

start_docker
scripts/base-images.sh
secrets=()
certificates=${SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}
configuration=${CARGO_HOME:-$HOME/.cargo}/config.toml
if [[ -s $certificates ]]; then secrets+=(--secret "id=ca,src=$certificates"); fi
if [[ -s $configuration ]]; then secrets+=(--secret "id=cargo,src=$configuration"); fi
docker buildx build --progress plain "${secrets[@]}" --load --tag "$IMAGE" . >"$TARGET/image.log" 2>&1 ||
    { tail -40 "$TARGET/image.log"; die "the image does not build"; }

bytes() { docker image inspect --format '{{.Size}}' "$1"; }
base=$(sed -n 's/^FROM \([^ ]*\)$/\1/p' Dockerfile | tail -1)
size=$((($(bytes "$IMAGE") - $(bytes "$base")) / 1000000))
((size <= MOST_MEGABYTES)) || die "the image is $size MB beside its base, more than $MOST_MEGABYTES"
user=$(docker image inspect --format '{{.Config.User}}' "$IMAGE")
[[ $user == 65532:65532 ]] || die "it runs as $user"
run() { docker run --rm --read-only --cap-drop ALL --network none "$@"; }
run --entrypoint headgate-proxy "$IMAGE" --check >/dev/null || die "the example configuration in the image is not valid"
for program in headgate-proxy headgate-health-checker; do
    run --entrypoint "$program" "$IMAGE" --version
done
say "image: $IMAGE, $size MB beside $base"
