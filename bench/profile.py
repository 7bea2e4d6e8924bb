#!/usr/bin/env python3
"""Where the instructions of one request go: two profiles of callgrind, of N and of 2N requests; what they differ by is free of
what starting costs. Arguments: the two files, N, how many functions to print."""

import re
import sys
from collections import Counter
from pathlib import Path


def own_costs(file: Path) -> Counter[str]:
    """Instructions of each function itself, callees left out."""
    names: dict[str, str] = {}
    costs: Counter[str] = Counter()
    function, in_call = "", False
    for line in file.read_text(errors="replace").splitlines():
        if line.startswith("fn="):
            function = named(line[3:], names)
        elif line.startswith("cfn="):
            named(line[4:], names)
        elif line.startswith("calls="):
            in_call = True
        elif re.match(r"[\d+*-]\S* \d+$", line):
            # The line after `calls=` is what the callee cost.
            costs[function] += 0 if in_call else int(line.split()[1])
            in_call = False
    return costs


def named(text: str, names: dict[str, str]) -> str:
    """A name is written out once, `(7) main`, and later only as `(7)`."""
    number, _, name = text.partition(" ")
    if name:
        names[number] = name
    return names.get(number, text)


def main() -> None:
    once, twice, requests, most = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
    before = own_costs(once)
    per_request = {name: (cost - before[name]) / requests for name, cost in own_costs(twice).items()}
    total = sum(per_request.values())
    for name, cost in sorted(per_request.items(), key=lambda entry: -entry[1])[:most]:
        print(f"{cost:8.0f} {100 * cost / total:5.1f} %  {name[:110]}")


if __name__ == "__main__":
    main()
