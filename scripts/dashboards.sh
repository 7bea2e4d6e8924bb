#!/usr/bin/env bash
# Dashboards and alerts as files: the dashboards are current, the rules are valid, each alert has a runbook, and each is
# shown to fire and to stay silent by a unit test. That their queries find data is tests/compose/run.sh.
source "$(dirname "$0")/lib.sh"
has promtool || die "no promtool: scripts/setup.sh --full"

scripts/dashboards.py --check
promtool check rules dashboards/alerts.yml
promtool test rules tests/dashboards/alerts.test.yml
alerts=$(sed -nE 's/^ *- alert: (\w+)$/\1/p' dashboards/alerts.yml)
count=$(grep -c . <<<"$alerts")
[[ $(grep -cE '^ *runbook: .{20,}' dashboards/alerts.yml) == "$count" ]] || die "an alert has no runbook line"
for alert in $alerts; do
    grep -q "alertname=\"$alert\",alertstate=\"firing\",severity" tests/dashboards/alerts.test.yml ||
        die "$alert: no unit test in which it fires"
done
say "$count alerts, each with a runbook and a test"
