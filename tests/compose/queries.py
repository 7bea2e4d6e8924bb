#!/usr/bin/env python3
"""Asks a Prometheus every query of every panel and alert: each must find data, or say in words when it finds none.

queries.py URL. Words are a sentence beginning with "None" in a panel's description, the annotation `none` of an alert.
"""

import json
import math
import re
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENTED = re.compile(r"(^|[.?] )None [^.]{10,}\.")
SELECTOR = re.compile(r"\b((?:headgate|process)_\w+|up)\b(\{[^}]*\})?")
MINUTES = 10


def ask(url, path, **parameters):
    with urllib.request.urlopen(f"{url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
        return json.load(answer)["data"]


def finds(url, query):
    """Whether a query has a number anywhere in the last minutes. A query that is wrong raises."""
    now = time.time()
    found = ask(url, "query_range", query=query, start=now - MINUTES * 60, end=now, step=5)["result"]
    return any(not math.isnan(float(value)) for series in found for _, value in series["values"])


def panels():
    for path in sorted((ROOT / "dashboards").glob("*.json")):
        for panel in json.loads(path.read_text())["panels"]:
            for target in panel.get("targets", []):
                query = target["expr"].replace("$__rate_interval", "1m")
                query = re.sub(r"\$(job|chain|endpoint)\b", ".*", query)
                yield f"{path.stem}: {panel['title']} {target['refId']}", query, bool(DOCUMENTED.search(panel["description"]))


def alerts(url):
    """Each series that an alert looks at: as long as all is well the alert itself has none."""
    for group in ask(url, "rules", type="alert")["groups"]:
        for rule in group["rules"]:
            finds(url, rule["query"])
            for name, labels in sorted(set(SELECTOR.findall(rule["query"]))):
                yield f"alert {rule['name']}: {name}", name + labels, "none" in rule["annotations"]


def main():
    url = sys.argv[1].rstrip("/")
    passed, failed, none = 0, 0, []
    for name, query, documented in [*panels(), *alerts(url)]:
        try:
            found = finds(url, query)
        except OSError as error:
            print(f"FAILED {name}: {error}: {query}")
            failed += 1
            continue
        if found or documented:
            passed += 1
            none += [] if found else [name]
        else:
            print(f"FAILED {name}: no data, and nothing says why: {query}")
            failed += 1
    print(f"documented none: {'; '.join(none) or 'nowhere'}")
    print(f"queries: {passed} passed, {failed} failed")
    sys.exit(failed > 0 or passed == 0)


if __name__ == "__main__":
    main()
