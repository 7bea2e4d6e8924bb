#!/usr/bin/env python3
"""Writes dashboards/*.json for Grafana from the short form below; with --check only says whether they are current.

A panel without data says "none". Where that is nothing to worry about its description says so, in a sentence that
begins with "None": the test of the dashboards (scripts/dashboard-queries.py) lets only those panels be empty.
"""

import json
import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "dashboards"
SOURCE = {"type": "prometheus", "uid": "${datasource}"}

CHAIN = 'chain=~"$chain"'
WHERE = 'chain=~"$chain",endpoint=~"$endpoint"'
PROXY = 'job=~"$job"'
RATE = "$__rate_interval"


def stat(title, about, query, legend="", unit="short", bad_above=None, bad_below=None, width=4):
    steps = [{"color": "green", "value": None}]
    if bad_above is not None:
        steps = [{"color": "green", "value": None}, {"color": "red", "value": bad_above}]
    if bad_below is not None:
        steps = [{"color": "red", "value": None}, {"color": "green", "value": bad_below}]
    return {"type": "stat", "title": title, "description": about, "width": width, "height": 4,
            "queries": [(query, legend)], "unit": unit, "steps": steps}


def lines(title, about, *queries, unit="short", width=12, stacked=False, steps=False):
    return {"type": "timeseries", "title": title, "description": about, "width": width, "height": 8,
            "queries": queries, "unit": unit, "stacked": stacked, "stepped": steps}


def states(title, about, query, legend, good, bad, width=12):
    """Over time: 1 is the word `good`, 0 the word `bad`."""
    return {"type": "state-timeline", "title": title, "description": about, "width": width, "height": 8,
            "queries": [(query, legend)], "unit": "short", "words": (good, bad)}


def row(title):
    return {"type": "row", "title": title}


OVERVIEW = [
    row("At a glance"),
    stat("Requests", "Requests on known chains per second.",
         f"sum(rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))", unit="reqps"),
    stat("Errors", "Share of requests that were answered with 5xx.",
         f'(sum(rate(headgate_http_requests_total{{{CHAIN},code=~"5.."}}[{RATE}])) or vector(0)) '
         f"/ sum(rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))", unit="percentunit", bad_above=0.01),
    stat("Saturated", "Requests per second that got 429 because everybody was at a limit.",
         f"sum(rate(headgate_saturated_total{{{CHAIN}}}[{RATE}])) or vector(0)", unit="reqps", bad_above=0.001),
    stat("Endpoints up", "Endpoints that may be selected.",
         f'sum(max by (chain, endpoint) (headgate_endpoint_healthy{{{WHERE},protocol="http"}}))', bad_below=1),
    stat("Parked", "Endpoints whose account or host is parked.",
         f"sum(max by (chain, endpoint) (headgate_endpoint_parked{{{WHERE}}}))", bad_above=1),
    stat("Proxies", "Proxies that can be scraped.", 'count(headgate_http_requests_in_flight) or vector(0)', bad_below=1),
    row("Who serves"),
    lines("Requests by chain", "Requests per second.",
          (f"sum by (chain) (rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))", "{{chain}}"), unit="reqps"),
    lines("Served by", "Answers per second that were passed on, by endpoint: who carries the load.",
          (f'sum by (chain, endpoint) (rate(headgate_attempts_total{{{WHERE},verdict=~"ok|client_fault"}}[{RATE}]))',
           "{{chain}} {{endpoint}}"), unit="reqps", stacked=True),
    lines("Answers by status", "What clients get. 499 is a client that went away.",
          (f"sum by (code) (rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))", "{{code}}"), unit="reqps", stacked=True),
    lines("Attempts by verdict", "What providers say. Anything but ok and client_fault was asked elsewhere.",
          (f"sum by (verdict) (rate(headgate_attempts_total{{{WHERE}}}[{RATE}]))", "{{verdict}}"), unit="reqps", stacked=True),
    row("Errors and saturation"),
    lines("Error rate", "Share of requests answered with 5xx, and share refused because all endpoints were at a limit.",
          (f'(sum by (chain) (rate(headgate_http_requests_total{{{CHAIN},code=~"5.."}}[{RATE}])) '
           f"or 0 * sum by (chain) (rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))) "
           f"/ sum by (chain) (rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))", "{{chain}} errors"),
          (f"(sum by (chain) (rate(headgate_saturated_total{{{CHAIN}}}[{RATE}])) "
           f"or 0 * sum by (chain) (rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))) "
           f"/ sum by (chain) (rate(headgate_http_requests_total{{{CHAIN}}}[{RATE}]))", "{{chain}} saturated"),
          unit="percentunit"),
    lines("Retries by reason", "Attempts that led to another one. None while every first attempt is answered.",
          (f"sum by (chain, reason) (rate(headgate_retries_total{{{CHAIN}}}[{RATE}]))", "{{chain}} {{reason}}"), unit="reqps"),
    row("Latency"),
    lines("Requests", "From a request's head to its answer's head.",
          (f"histogram_quantile(0.5, sum by (le) (rate(headgate_http_request_duration_seconds_bucket{{{CHAIN}}}[{RATE}])))", "p50"),
          (f"histogram_quantile(0.95, sum by (le) (rate(headgate_http_request_duration_seconds_bucket{{{CHAIN}}}[{RATE}])))", "p95"),
          (f"histogram_quantile(0.99, sum by (le) (rate(headgate_http_request_duration_seconds_bucket{{{CHAIN}}}[{RATE}])))", "p99"),
          unit="s"),
    lines("Providers' own", "From sending an attempt until its verdict, the 95th of 100.",
          (f"histogram_quantile(0.95, sum by (le, chain, endpoint) (rate(headgate_attempt_duration_seconds_bucket{{{WHERE}}}[{RATE}])))",
           "{{chain}} {{endpoint}}"), unit="s"),
    lines("Added by Headgate", "The mean time of a request less the mean time of its attempts: the proxy's own work, and "
          "waiting for capacity.",
          (f"clamp_min((sum by (chain) (rate(headgate_http_request_duration_seconds_sum{{{CHAIN}}}[{RATE}])) "
           f"- sum by (chain) (rate(headgate_attempt_duration_seconds_sum{{{CHAIN}}}[{RATE}]))) "
           f"/ sum by (chain) (rate(headgate_http_request_duration_seconds_count{{{CHAIN}}}[{RATE}])), 0)", "{{chain}}"),
          unit="s"),
    lines("In flight", "Requests whose answer has not begun.",
          ("sum by (instance) (headgate_http_requests_in_flight)", "{{instance}}")),
    row("Health"),
    states("Endpoints over HTTP", "May it be selected? By the proxies' own view.",
           f'max by (chain, endpoint) (headgate_endpoint_healthy{{{WHERE},protocol="http"}})', "{{chain}} {{endpoint}}", "up", "down"),
    states("Endpoints over WebSocket", "May it be selected? None where no endpoint has a ws_url.",
           f'max by (chain, endpoint) (headgate_endpoint_healthy{{{WHERE},protocol="ws"}})', "{{chain}} {{endpoint}}", "up", "down"),
    states("Who checks", "Which process probes the endpoints; one of a deployment does.",
           f"headgate_health_checking{{{PROXY}}}", "{{job}} {{instance}}", "checks", "does not"),
    lines("Blocks behind", "How far each endpoint is behind the one that is furthest.",
          (f"max by (chain) (headgate_endpoint_block{{{CHAIN}}}) - on (chain) group_right "
           f"max by (chain, endpoint) (headgate_endpoint_block{{{WHERE}}})", "{{chain}} {{endpoint}}")),
    lines("Probes by result", "Health probes per second; limited ones were refused for a rate limit.",
          (f"sum by (result) (rate(headgate_health_checks_total{{{WHERE}}}[{RATE}]))", "{{result}}"), unit="reqps"),
    lines("Probes' time", "The 95th of 100 probes.",
          (f"histogram_quantile(0.95, sum by (le, chain, endpoint) (rate(headgate_health_check_duration_seconds_bucket{{{WHERE}}}[{RATE}])))",
           "{{chain}} {{endpoint}}"), unit="s"),
]

LIMITS = [
    row("Ceilings"),
    lines("Learned ceilings", "What each account may get per window as learned so far: it falls when a provider refuses, and "
          "grows step by step. None until a provider has refused.",
          (f'max by (chain, endpoint, window_seconds) (headgate_capacity_ceiling{{{WHERE},kind="learned"}})',
           "{{chain}} {{endpoint}} per {{window_seconds}} s"), width=24, steps=True),
    lines("Use of learned ceilings", "Use as a share of the learned ceiling. None until a provider has refused.",
          (f'max by (chain, endpoint, window_seconds) (headgate_capacity_usage{{{WHERE}}} '
           f'/ ignoring (kind) (headgate_capacity_ceiling{{{WHERE},kind="learned"}} > 0))',
           "{{chain}} {{endpoint}} per {{window_seconds}} s"), unit="percentunit"),
    lines("Levels of the steady law", "The level that each account served without a refusal, the lowest refused one above it "
          "(0: none remembered). None where no endpoint learns by mode steady.",
          (f"max by (chain, endpoint) (headgate_capacity_level{{{WHERE}}})", "{{chain}} {{endpoint}} level"),
          (f"max by (chain, endpoint) (headgate_capacity_refused_level{{{WHERE}}})", "{{chain}} {{endpoint}} refused"),
          steps=True),
    lines("What refusals cost", "Refusals not yet paid for by answers: a level is tried to be raised below 0.4, and after some "
          "windows. None where no endpoint learns by mode steady.",
          (f"max by (chain, endpoint) (headgate_capacity_debt{{{WHERE}}})", "{{chain}} {{endpoint}}")),
    lines("Margins below refused levels", "What is kept below a refused level, as a share: 0.5 to 8 %. None where no endpoint "
          "learns by mode steady.",
          (f"max by (chain, endpoint) (headgate_capacity_margin{{{WHERE}}})", "{{chain}} {{endpoint}}"), unit="percentunit"),
    lines("Next trials", "Until a level may be tried to be raised, at most; below 0 it is due once all of the level is used. "
          "None where no endpoint learns by mode steady.",
          (f"min by (chain, endpoint) (headgate_capacity_next_trial_timestamp_seconds{{{WHERE}}}) - time()",
           "{{chain}} {{endpoint}}"), unit="s"),
    lines("Use of configured ceilings", "Use as a share of the configured ceiling. Near 1 for long: buy or add capacity. "
          "None where no endpoint has a capacity.",
          (f'max by (chain, endpoint, window_seconds) (headgate_capacity_usage{{{WHERE}}} '
           f'/ ignoring (kind) (headgate_capacity_ceiling{{{WHERE},kind="static"}} > 0))',
           "{{chain}} {{endpoint}} per {{window_seconds}} s"), unit="percentunit"),
    lines("Ceilings lowered", "Decreases in five minutes. None until a provider has refused.",
          (f"sum by (chain, endpoint) (increase(headgate_capacity_decreases_total{{{WHERE}}}[5m]))", "{{chain}} {{endpoint}}")),
    lines("Passed over", "Times per second that an endpoint was left out because it was parked or at its ceiling. "
          "None while there is room everywhere.",
          (f"sum by (chain, endpoint) (rate(headgate_capacity_skipped_total{{{WHERE}}}[{RATE}]))", "{{chain}} {{endpoint}}"), unit="ops"),
    lines("Saturated", "Requests per second that were given up because everybody was at a limit. None while nobody was.",
          (f"sum by (chain) (rate(headgate_saturated_total{{{CHAIN}}}[{RATE}]))", "{{chain}}"), unit="reqps"),
    row("Parked accounts"),
    states("Parked", "Is the endpoint's account or host parked?",
           f"max by (chain, endpoint) (headgate_endpoint_parked{{{WHERE}}})", "{{chain}} {{endpoint}}", "parked", "free"),
    lines("Why", "Parks in five minutes by reason: burst no wait was stated, hinted one was, quota, ban, auth. "
          "None until something was parked.",
          (f"sum by (chain, endpoint, reason) (increase(headgate_parks_total{{{WHERE}}}[5m]))", "{{chain}} {{endpoint}} {{reason}}")),
    lines("Refusals", "Calls per second that were refused for a limit: burst or quota. None until a provider has refused.",
          (f"sum by (chain, endpoint, kind) (rate(headgate_hits_total{{{WHERE}}}[{RATE}]))", "{{chain}} {{endpoint}} {{kind}}"), unit="reqps"),
    lines("Recoveries", "Parked accounts that came back in five minutes. None until one did.",
          (f"sum by (chain, endpoint) (increase(headgate_recoveries_total{{{WHERE}}}[5m]))", "{{chain}} {{endpoint}}")),
    lines("Detection", "Answers per second by the rule that decided; `unknown` and `guess` want a look.",
          (f"topk(12, sum by (rule) (rate(headgate_detect_rule_hits_total{{{PROXY}}}[{RATE}])))", "{{rule}}"), unit="ops"),
]

CLIENTS = [
    row("WebSockets"),
    lines("Open sockets", "Clients' WebSockets. None until one was opened.",
          (f"sum by (chain) (headgate_websocket_connections{{{CHAIN}}})", "{{chain}}")),
    lines("Closed sockets", "Sockets that ended in five minutes, by reason. None until one ended.",
          (f"sum by (chain, reason) (increase(headgate_websocket_closes_total{{{CHAIN}}}[5m]))", "{{chain}} {{reason}}")),
    lines("Calls over upstream sockets", "Attempts per second over WebSocket. None where no call needs one.",
          (f'sum by (chain, endpoint) (rate(headgate_attempts_total{{{WHERE},protocol="ws"}}[{RATE}]))', "{{chain}} {{endpoint}}"), unit="reqps"),
    row("Clients and caps"),
    lines("Refused clients", "Requests per second that were refused because of who asked, by reason: unauthorized, "
          "forbidden, client_limit, cost_exceeds_limit. None without CLIENTS_FILE.",
          (f"sum by (chain, reason) (rate(headgate_client_refusals_total{{{CHAIN}}}[{RATE}]))", "{{chain}} {{reason}}"), unit="reqps"),
    states("Clients' limits", "Are they counted by all proxies together, or by each alone? None without CLIENTS_FILE.",
           f"1 - headgate_client_limits_degraded{{{PROXY}}}", "{{instance}}", "together", "alone"),
    lines("Gates: use", "What is in flight at each gate, against its limit (0: no limit). None without a gate.",
          (f"sum by (gate) (headgate_concurrency_in_flight{{{PROXY}}})", "{{gate}} in flight"),
          (f"sum by (gate) (headgate_concurrency_limit{{{PROXY}}})", "{{gate}} limit")),
    lines("Gates: waiting", "Requests that wait at a gate. None without a gate.",
          (f"sum by (gate) (headgate_concurrency_waiting{{{PROXY}}})", "{{gate}}")),
    lines("Gates: shed", "Requests per second that a gate turned away. None while no gate did.",
          (f"sum by (gate, reason) (rate(headgate_concurrency_shed_total{{{PROXY}}}[{RATE}]))", "{{gate}} {{reason}}"), unit="reqps"),
    states("Flags", "Does the flags' source answer? None without one.",
           f"min by (provider) (headgate_flags_ready{{{PROXY}}})", "{{provider}}", "ready", "away"),
]

PROCESS = [
    row("Valkey"),
    states("Valkey", "Does each proxy reach it? None without Valkey.",
           f"1 - headgate_store_degraded{{{PROXY}}}", "{{instance}}", "up", "degraded"),
    lines("Round trips", "To Valkey per second, by what they are for. None without Valkey.",
          (f"sum by (op) (rate(headgate_store_round_trips_total{{{PROXY}}}[{RATE}]))", "{{op}}"), unit="ops"),
    lines("Round trips per request", "Leases are taken in blocks, so this stays well below 1. None without Valkey.",
          (f"sum(rate(headgate_store_round_trips_total{{{PROXY}}}[{RATE}])) / sum(rate(headgate_http_requests_total{{{PROXY}}}[{RATE}]))",
           "round trips per request")),
    lines("Failed commands", "Per second. None without Valkey.",
          (f"sum by (op) (rate(headgate_store_errors_total{{{PROXY}}}[{RATE}]))", "{{op}}"), unit="ops"),
    row("Process"),
    lines("Processor", "Cores in use.", (f"rate(process_cpu_seconds_total{{{PROXY}}}[{RATE}])", "{{instance}}")),
    lines("Processor per request", "Seconds of one core.",
          (f"sum(rate(process_cpu_seconds_total{{{PROXY}}}[{RATE}])) / sum(rate(headgate_http_requests_total{{{PROXY}}}[{RATE}]))", "per request"),
          unit="s"),
    lines("Memory", "Resident.", (f"process_resident_memory_bytes{{{PROXY}}}", "{{instance}}"), unit="bytes"),
    lines("File descriptors", "Share of what the system allows. Each connection is one.",
          (f"process_open_fds{{{PROXY}}} / process_max_fds{{{PROXY}}}", "{{instance}}"), unit="percentunit"),
    lines("Threads", "One per core, and four.", (f"process_threads{{{PROXY}}}", "{{instance}}")),
    lines("Uptime", "A line that falls is a restart.",
          (f"time() - process_start_time_seconds{{{PROXY}}}", "{{instance}}"), unit="s"),
    row("Configuration"),
    lines("Versions", "Processes by version.", ("count by (version) (headgate_build_info)", "{{version}}")),
    states("Endpoints file", "Is the file on disk the one in force? None until it was read again.",
           f"headgate_config_last_reload_successful{{{PROXY}}}", "{{instance}}", "in force", "refused"),
    lines("Reloads", "In five minutes, by result. None until a file changed.",
          (f"sum by (result) (increase(headgate_config_reloads_total{{{PROXY}}}[5m]))", "{{result}}")),
]

BOARDS = {
    "headgate": ("Headgate", OVERVIEW),
    "headgate-limits": ("Headgate: limits", LIMITS),
    "headgate-clients": ("Headgate: sockets, clients, caps", CLIENTS),
    "headgate-process": ("Headgate: store and process", PROCESS),
}


def variable(name, label, query):
    return {"type": "query", "name": name, "label": label, "datasource": SOURCE,
            "query": {"query": query, "refId": name}, "definition": query, "refresh": 2, "sort": 1,
            "multi": True, "includeAll": True, "allValue": ".*",
            "current": {"selected": True, "text": ["All"], "value": ["$__all"]}}


VARIABLES = [
    {"type": "datasource", "name": "datasource", "label": "Data source", "query": "prometheus", "refresh": 1,
     "current": {}, "hide": 0},
    variable("job", "Job", "label_values(headgate_build_info, job)"),
    variable("chain", "Chain", "label_values(headgate_endpoint_healthy, chain)"),
    variable("endpoint", "Endpoint", 'label_values(headgate_endpoint_healthy{chain=~"$chain"}, endpoint)'),
]


def defaults(panel):
    found = {"unit": panel["unit"], "noValue": "none", "min": 0, "color": {"mode": "palette-classic"}}
    if panel["type"] == "stat":
        found |= {"color": {"mode": "thresholds"}, "thresholds": {"mode": "absolute", "steps": panel["steps"]}}
    if panel["type"] == "timeseries":
        found["custom"] = {"lineWidth": 1, "fillOpacity": 20 if panel["stacked"] else 5, "showPoints": "never",
                           "lineInterpolation": "stepAfter" if panel["stepped"] else "linear",
                           "stacking": {"mode": "normal" if panel["stacked"] else "none", "group": "A"}}
    if panel["type"] == "state-timeline":
        good, bad = panel["words"]
        colors = {"parked": ("orange", "green"), "checks": ("green", "transparent")}.get(good, ("green", "red"))
        found["mappings"] = [{"type": "value", "options": {
            "1": {"text": good, "color": colors[0], "index": 0}, "0": {"text": bad, "color": colors[1], "index": 1}}}]
        found["custom"] = {"fillOpacity": 80, "lineWidth": 0}
    return found


def options(panel):
    if panel["type"] == "stat":
        return {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "area",
                "colorMode": "value", "textMode": "auto"}
    if panel["type"] == "state-timeline":
        return {"mergeValues": True, "showValue": "never", "rowHeight": 0.8,
                "legend": {"displayMode": "list", "placement": "bottom", "showLegend": True}}
    return {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"}}


def placed(short):
    """Panels from left to right, a new line where one does not fit."""
    panels, x, y, tall = [], 0, 0, 0
    for number, panel in enumerate(short, start=1):
        is_row = panel["type"] == "row"
        width, height = (24, 1) if is_row else (panel["width"], panel["height"])
        if is_row or x + width > 24:
            x, y, tall = 0, y + tall, 0
        place = {"x": x, "y": y, "w": width, "h": height}
        x, tall = x + width, max(tall, height)
        if is_row:
            panels.append({"id": number, "type": "row", "title": panel["title"], "collapsed": False, "panels": [],
                           "gridPos": place})
            x, y, tall = 0, y + 1, 0
            continue
        targets = [{"refId": chr(ord("A") + index), "datasource": SOURCE, "expr": query, "legendFormat": legend,
                    "range": True} for index, (query, legend) in enumerate(panel["queries"])]
        panels.append({"id": number, "type": panel["type"], "title": panel["title"], "description": panel["description"],
                       "datasource": SOURCE, "gridPos": place, "targets": targets,
                       "fieldConfig": {"defaults": defaults(panel), "overrides": []}, "options": options(panel)})
    return panels


def board(uid, title, short):
    links = [{"type": "dashboards", "title": "Headgate", "tags": ["headgate"], "asDropdown": False, "includeVars": True,
              "keepTime": True, "targetBlank": False, "icon": "external link", "tooltip": "", "url": ""}]
    return {"uid": uid, "title": title, "tags": ["headgate"], "schemaVersion": 39, "version": 1, "editable": True,
            "graphTooltip": 1, "refresh": "10s", "time": {"from": "now-30m", "to": "now"}, "timezone": "browser",
            "templating": {"list": VARIABLES}, "annotations": {"list": []}, "links": links, "panels": placed(short)}


def main():
    stale = []
    for uid, (title, short) in BOARDS.items():
        path, text = FOLDER / f"{uid}.json", json.dumps(board(uid, title, short), indent=2, ensure_ascii=False) + "\n"
        if path.exists() and path.read_text() == text:
            continue
        stale.append(path.name)
        if "--check" not in sys.argv:
            path.write_text(text)
    if stale and "--check" in sys.argv:
        sys.exit(f"not current, run scripts/dashboards.py: {', '.join(stale)}")
    print(f"{len(BOARDS)} dashboards, {len(stale)} written")


if __name__ == "__main__":
    main()
