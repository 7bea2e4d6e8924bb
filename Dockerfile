# Both binaries in one small image. `docker build .` needs nothing else.
#
# Where certificates of your own stand between the build and the package registry, or cargo needs a configuration,
# hand them over: --secret id=ca,src=ca.pem --secret id=cargo,src=config.toml (scripts/image.sh does).

ARG RUST=1.95

# What the dependencies are: every manifest, and nothing in place of our own code. It changes only when they do, so the
# layer below is built once for many changes of ours.
FROM debian:bookworm-slim AS manifests
WORKDIR /src
COPY . .
RUN find . -type f ! -name Cargo.toml ! -name Cargo.lock ! -path '*/src/lib.rs' ! -path '*/src/main.rs' \
        ! -path '*/src/bin/*.rs' ! -path '*/benches/*.rs' ! -name '*.profdata' -delete \
    && find . -type d -empty -delete \
    && find . -name '*.rs' | while read -r file; do echo 'fn main() {}' >"$file"; done \
    && find . -exec touch -h -d @0 {} +

FROM rust:${RUST}-slim-bookworm AS build
WORKDIR /src
ENV CARGO_INCREMENTAL=0
# As scripts/release-build.sh says it; the profile's settings must be the recorded ones, down to debug information.
ENV RUSTFLAGS="-Cprofile-use=/src/bench/release.profdata -Cllvm-args=-no-pgo-warn-mismatch"
COPY --from=manifests /src .
RUN --mount=type=secret,id=ca --mount=type=secret,id=cargo,target=/usr/local/cargo/config.toml \
    --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    if [ -s /run/secrets/ca ]; then export CARGO_HTTP_CAINFO=/run/secrets/ca; fi \
    && cargo build --release --locked --bin headgate-proxy --bin headgate-health-checker
COPY . .
# Cargo goes by the time of a file, and ours may be older than the layer above.
RUN --mount=type=cache,target=/usr/local/cargo/registry,sharing=locked \
    find crates services bench -name '*.rs' -exec touch {} + \
    && cargo build --release --locked --offline --bin headgate-proxy --bin headgate-health-checker \
    && mkdir /out && cp target/release/headgate-proxy target/release/headgate-health-checker /out/ && strip /out/*

FROM debian:bookworm-slim
WORKDIR /app
COPY --from=build /out/ /usr/local/bin/
COPY configs/endpoints-example.json configs/endpoints.json
# Nobody in particular: nothing in the image belongs to it, and nothing needs to be written.
USER 65532:65532
EXPOSE 8080 9090
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=5s --timeout=3s --start-period=15s --retries=3 CMD ["headgate-proxy", "healthcheck"]
ENTRYPOINT ["headgate-proxy"]
