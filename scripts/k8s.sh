#!/usr/bin/env bash
# Renders k8s/manifests from the chart; with --check says whether they agree, and checks the chart itself: lint, value
# sets against Kubernetes' own schemas, and values that must be refused.
source "$(dirname "$0")/lib.sh"

TOOLS=${HEADGATE_TOOLS:-$HOME/.cache/headgate}
# The oldest that the chart allows and the newest that there are schemas of.
KUBERNETES=(1.26.0 1.31.0 1.37.0)
HELM=$TOOLS/bin/helm
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

[[ -x $HELM && -x $TOOLS/bin/kubeconform ]] || die "no helm or kubeconform: scripts/setup.sh --full"

render() { "$HELM" template headgate k8s/chart --kube-version 1.31.0 --namespace headgate "$@"; }

# One file for each template, without the blank lines that templates leave.
manifests() {
    local rendered=$out/rendered file
    render --values k8s/values/manifests.yaml --output-dir "$rendered" >/dev/null
    mkdir -p "$1"
    for file in "$rendered"/headgate/templates/*.yaml; do
        sed '/^ *$/d' "$file" >"$1/${file##*/}"
    done
}

conforms() {
    "$TOOLS/bin/kubeconform" -strict -summary -kubernetes-version "$1" \
        -schema-location "$TOOLS/schemas/{{ .NormalizedKubernetesVersion }}{{ .StrictSuffix }}/{{ .ResourceKind }}{{ .KindSuffix }}.json" \
        -schema-location "k8s/schemas/{{ .ResourceKind }}{{ .KindSuffix }}.json" "${@:2}"
}

# refused OPTION...: the values' schema must say no.
refused() {
    if render "$@" >/dev/null 2>"$out/said"; then die "values that are wrong were taken: $*"; fi
    grep -q "values don't meet the specifications" "$out/said" || { cat "$out/said"; die "refused for another reason: $*"; }
}

if [[ ${1:-} != --check ]]; then
    rm -rf k8s/manifests
    manifests k8s/manifests
    say "rendered $(find k8s/manifests -name '*.yaml' | wc -l) files"
    exit
fi

"$HELM" lint --quiet --strict --kube-version 1.31.0 k8s/chart
manifests "$out/manifests"
diff -r k8s/manifests "$out/manifests" || die "k8s/manifests is not what the chart renders: scripts/k8s.sh"
for values in k8s/values/*.yaml; do
    name=$(basename "$values" .yaml)
    "$HELM" lint --quiet --strict --kube-version 1.31.0 --values "$values" k8s/chart
    render --values "$values" >"$out/$name.yaml"
done
# As installed by one command, with a password of its own.
render >"$out/defaults.yaml"
for version in "${KUBERNETES[@]}"; do conforms "$version" "$out"/*.yaml; done
refused --set proxy.replica=3
refused --set valkey.enabled=false
refused --set settings.log-level=debug
refused --set-json 'endpoints.content={"mainnet":{"a":{"role":"primary"}}}'
# Both services get the keys, and read the endpoints where they are mounted.
rendered=$out/external-valkey.yaml
[[ $(grep -c 'name: rpc-provider-keys' "$rendered") == 2 ]] || die "the keys do not reach both services"
[[ $(grep -c 'value: "/etc/headgate/endpoints.json"' "$rendered") == 2 && $(grep -c 'mountPath: /etc/headgate$' "$rendered") == 2 ]] ||
    die "the endpoints are not mounted where they are read"
say "manifests agree, $(find k8s/values -name '*.yaml' | wc -l) value sets and the defaults conform to Kubernetes ${KUBERNETES[*]}"
