"""What headgate-proxy is to reach, beside what was measured. Judges only what the scenarios at hand can tell.
Arguments: the JSON files of runs that are judged together."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Figures = dict[str, dict[str, dict]]


@dataclass(frozen=True)
class Goal:
    """A figure of headgate's, by scenario and program, and what it may be at most (or at least)."""

    text: str
    figure: Callable[[Figures], float | None]
    limit: float
    goal: float | None = None
    at_least: bool = False

    def line(self, figures: Figures) -> str | None:
        try:
            value = self.figure(figures)
        except KeyError:
            return None
        if value is None:
            return None
        sign, met = (">=", value >= self.limit) if self.at_least else ("<=", value <= self.limit)
        wished = "" if self.goal is None else f", goal {self.goal:g}"
        return f"{'met    ' if met else 'NOT MET'} {self.text}: {value:.2f} ({sign} {self.limit:g}{wished})"


def own(scenario: str, figure: str) -> Callable[[Figures], float | None]:
    return lambda figures: figures[scenario]["headgate"][figure]


def to_plain(scenario: str, calls: int = 1) -> Callable[[Figures], float | None]:
    """Its processor time per request as a multiple of what `calls` requests of `plain` cost."""
    cost = "cpu_us_per_request"
    return lambda figures: figures[scenario]["headgate"][cost] / (calls * figures["plain"]["headgate"][cost])


GOALS = [
    Goal("plain: cost to bare", own("plain", "cost_to_bare"), 1.4, 1.2),
    Goal("plain: cost to haproxy", own("plain", "cost_to_haproxy"), 1.6, 1.3),
    Goal("plain: p99 less haproxy's, ms", own("plain", "p99_ms_over_haproxy"), 0.3),
    Goal("new-connections: cost to bare", own("new-connections", "cost_to_bare"), 1.5),
    Goal("new-connections: cost to haproxy", own("new-connections", "cost_to_haproxy"), 1.5),
    Goal("endpoints-300: cost to plain's", to_plain("endpoints-300"), 1.1),
    Goal("chains-1000: cost to plain's", to_plain("chains-1000"), 1.1),
    Goal("batch-100: cost to ten single requests", to_plain("batch-100", calls=10), 1.0),
    Goal("answer-10m: throughput to haproxy's", own("answer-10m", "throughput_to_haproxy"), 0.8, at_least=True),
    Goal("answer-10m: resident MB", own("answer-10m", "resident_mb"), 128),
    Goal("plain: idle MB", own("plain", "idle_mb"), 30),
    Goal("plain: KB per idle connection", own("plain", "kb_per_idle_connection"), 20),
]


def judged(results: list[dict]) -> list[str]:
    """A line for each goal that the measured scenarios and programs can tell of."""
    # What is measured of sockets has no goals here.
    figures = {result["scenario"]["name"]: result["summary"] for result in results if isinstance(result["scenario"], dict)}
    return [line for line in (goal.line(figures) for goal in GOALS) if line]


def main() -> None:
    results = [result for file in sys.argv[1:] for result in json.loads(Path(file).read_text())["results"]]
    print("\n".join(judged(results)))


if __name__ == "__main__":
    main()
