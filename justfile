# The commands of this repository. Each is one line, so `just` itself is a convenience (cargo install just).

# list what there is
default:
    @just --list

# format, lints, all tests, documentation links
test:
    ./scripts/test.sh

# everything: also release build, demo, soak, real clients, benchmark smoke, fuzzing
test-full:
    ./scripts/test.sh --full

# install what the tests and benchmarks need
setup:
    ./scripts/setup.sh --full

# the programs as they are shipped, in target/release
release:
    ./scripts/release-build.sh --bin headgate-proxy --bin headgate-health-checker

# run against simulated providers on http://localhost:8080/demo
demo:
    cargo run --release --bin headgate-proxy -- --demo

# validate an endpoints file
check-config file="configs/endpoints-example.json":
    cargo run --release --bin headgate-proxy -- --config-file {{file}} --check

# the benchmark: a table and bench/out/*.json (bench/README.md)
bench *options:
    python3 bench/run.py {{options}}

# the p50 while Valkey is slow, silent and gone
bench-valkey *options:
    python3 bench/valkey.py {{options}}

# the benchmark's whole table in about twelve minutes
bench-table *options:
    ./bench/table.sh {{options}}

# instructions per request, the figure that does not wobble
bench-instructions:
    ./bench/callgrind.sh

# record how the proxy runs, for the compiler: bench/release.profdata
bench-record:
    ./bench/record.sh

# soak tests at full length
soak:
    ./scripts/soak.sh

# viem, ethers and web3.py through the proxy in front of a real node
clients:
    ./tests/clients/run.sh

# the operators' page in a headless browser; pictures of it in target/page
page:
    PICTURES=target/page ./tests/page/run.sh

# build the image headgate:local
image:
    ./scripts/image.sh

# the store's tests on a Valkey in a container
containers:
    ./tests/containers/run.sh

# docker compose up, a rolling update under load, and every query of the dashboards
compose:
    ./tests/compose/run.sh

# the Kubernetes manifests, rendered from the chart
manifests:
    ./scripts/k8s.sh

# fuzz every target for a while
fuzz seconds="60":
    ./scripts/fuzz.sh {{seconds}}

fmt:
    cargo fmt --all

lint:
    cargo clippy --workspace --all-targets --locked -- -D warnings

# licences, banned crates, sources
deny:
    ./scripts/dependencies.sh

# the API documentation, with its links checked
docs:
    RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked

# relative links in the Markdown pages
docs-links:
    python3 scripts/check-links.py
