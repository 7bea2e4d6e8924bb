#!/usr/bin/env python3
"""Every relative link in the Markdown pages leads to a file, and every fragment to a heading."""

import re
import subprocess
import sys
from pathlib import Path

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*?)\s*$", re.M)
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.M | re.S)


def anchors(page: Path) -> set[str]:
    headings = HEADING.findall(CODE.sub(lambda m: m[0].strip("`") if "\n" not in m[0] else "", page.read_text()))
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def problem(page: Path, target: str) -> str | None:
    if re.match(r"[a-z]+:", target):
        return None
    path, _, fragment = target.partition("#")
    file = (page.parent / path) if path else page
    if not file.exists():
        return f"{page}: no such file: {target}"
    if fragment and file.suffix == ".md" and fragment not in anchors(file):
        return f"{page}: no such heading: {target}"
    return None


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        capture_output=True, text=True, check=True,
    ).stdout.split("\n")
    pages = [Path(p) for p in listed if p and Path(p).exists()]
    links = [(p, t) for p in pages for t in LINK.findall(CODE.sub("", p.read_text()))]
    problems = [found for found in (problem(*link) for link in links) if found]
    print(*problems, f"{len(links)} links in {len(pages)} pages, {len(problems)} broken", sep="\n")
    return 1 if problems else 0


sys.exit(main())
