"""Write the tables of README, docs/start.md and docs/status.md: `make status`.

They count the committed results in `figures/`.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import marks

from repro.batch.check import (
    ORIGIN_WORDS,
    UNKNOWN_WORDS,
    StoredFigure,
    headline,
    point_groups,
    stored,
)
from repro.figures import params
from repro.figures.claims import KINDS, OUTCOMES, REPRODUCED
from repro.figures.saved import verdict_counts

ROOT = Path(__file__).resolve().parents[1]
README = ROOT / "README.md"
PAGE = ROOT / "docs" / "status.md"
START = ROOT / "docs" / "start.md"
#: Values of every figure at the quick profile.
QUICK = ROOT / "figures" / "quick.json"
OTHER = ("partial", "missed", "not comparable")
#: Origins of published numbers that have columns in README.
ORIGINS = ("simulation", "testbed")


@dataclass(frozen=True)
class Paper:
    """A row of README's table."""

    name: str
    missed: str
    #: Figures with a partial or missed claim that ``missed`` is about.
    figures: tuple[str, ...]


PAPERS = {
    "tiresias": Paper(
        "Tiresias, NSDI 2019",
        "Ratios of Tables 1 and 5, bins of Fig 10: the jobs of the paper are not public.",
        ("tiresias/tab01_sf_srtf", "tiresias/tab05_trace_jct", "tiresias/fig10_testbed_jct"),
    ),
    "muri": Paper(
        "Muri, SIGCOMM 2022",
        "Fig 13, Muri-L with one job type: text and public code differ. Fig 10, Themis on one "
        "trace: another solver. Fig 8, queues: measured on a testbed.",
        (
            "muri/fig13_job_types",
            "muri/fig10_unknown_durations",
            "muri/fig08_queue_blocking_utilisation",
        ),
    ),
    "gavel": Paper(
        "Gavel, OSDI 2020",
        "Figs 10 and A3, finish-time fairness past saturation: another solver. Fig 14, estimated "
        "speeds: which pairs were measured is not public.",
        ("gavel/fig10_ftf_multiple", "gavel/figa3_ftf_single", "gavel/fig14_estimator"),
    ),
    "liquid": Paper(
        "Liquid, TPDS 2022",
        "Figs 18 and 19, placers of other systems, and Fig 15, a mixed sequence: the testbed ran "
        "each once.",
        ("liquid/fig18_immediate_mode", "liquid/fig19_batch_mode", "liquid/fig15a_sequences_k80"),
    ),
    "pcs": Paper(
        "PCS, 2024",
        "Fig 7, some bars: their configurations are not public. Figs 4 to 6: measured on a "
        "testbed. Fig 8, predictions of Themis: text and artifact differ.",
        (
            "pcs/fig07a_philly_jct",
            "pcs/fig04_testbed_errors",
            "pcs/fig06a_testbed_unfairness",
            "pcs/fig08a_drawn_errors",
        ),
    ),
}


def committed() -> list[StoredFigure]:
    """Results in `figures/`, paper by paper."""
    order = {paper: row for row, paper in enumerate(PAPERS)}
    results = stored(params.discover(ROOT), ROOT / "figures")
    return sorted(results, key=lambda result: order.get(result.entry.paper, len(order)))


def readme_table(results: list[StoredFigure]) -> str:
    """Published numbers of each paper by origin, and sums, in Markdown."""
    total = headline(results)
    points = total["points"]
    tally: Counter[str] = Counter()
    for kind in KINDS:
        if kind != "check":
            tally.update(total["claims"][kind])
    rows = [
        "| paper | simulated | within 2 % | within 10 % | measured | within 2 % | within 10 % "
        "| did not come out |",
        f"|---|{'---:|' * 6}---|",
    ]
    for name, paper in PAPERS.items():
        of_paper = [result for result in results if result.entry.paper == name]
        cells = _origin_cells(headline(of_paper)["points"]["by_origin"])
        rows.append(f"| {paper.name} | {cells} | {paper.missed} [More](docs/status.md#{name}) |")
    cells = _origin_cells(points["by_origin"])
    outcomes = ", ".join(f"{tally[name]} {name}" for name in OUTCOMES if tally[name])
    origins = ", ".join(
        f"{group['judged']:,} {ORIGIN_WORDS[origin]}"
        for origin, group in points["by_origin"].items()
        if group["judged"]
    )
    rows += [
        f"| **all** | {cells} | [Every figure](docs/status.md) |",
        "",
        f"{len(results)} figures and tables judge {points['judged']:,} published numbers: "
        f"{origins}. They judge {sum(tally.values())} claims of the papers: {outcomes}.",
    ]
    return "\n".join(rows)


def _origin_cells(groups: Mapping[str, Any]) -> str:
    """Numbers judged, and their parts within 2 and 10 %, for each origin of `ORIGINS`."""
    cells = []
    for origin in ORIGINS:
        group = groups.get(origin)
        if group and group["judged"]:
            near = [f"{group['within'][limit]:.0%}" for limit in ("2 %", "10 %")]
            cells += [f"{group['judged']:,}", *near]
        else:
            cells += ["", "", ""]
    return " | ".join(cells)


def sums(results: list[StoredFigure]) -> str:
    """Published numbers by origin and paper, then claims by kind, as two tables in Markdown."""
    summary = headline(results)
    points = summary["points"]
    limits = list(points["within"])
    rows = [
        f"| published numbers | judged | {' | '.join(f'within {limit}' for limit in limits)} |",
        f"|---|{'---:|' * (1 + len(limits))}",
    ]
    for name, group in point_groups(points).items():
        near = " | ".join(f"{group['within'][limit]:.0%}" for limit in limits)
        rows.append(f"| {name} | {group['judged']:,} | {near} |")
    unknown = {UNKNOWN_WORDS[name]: group["judged"] for name, group in points["by_unknown"].items()}
    rows += [
        "",
        "| input that nobody outside can know | judged |",
        "|---|---:|",
        *(f"| {reason} | {count} |" for reason, count in unknown.items()),
        "",
        f"| claims | all | {' | '.join(OUTCOMES)} |",
        f"|---|{'---:|' * (1 + len(OUTCOMES))}",
    ]
    for kind, tally in summary["claims"].items():
        counts = " | ".join(str(tally.get(outcome, "")) for outcome in OUTCOMES)
        noun = "own check" if kind == "check" else kind
        rows.append(f"| {noun}s | {sum(tally.values())} | {counts} |")
    return "\n".join(rows)


def cells(results: list[StoredFigure]) -> list[str]:
    """Cells of a row: claims reproduced of all claims for each kind, then the other verdicts."""
    by_kind = headline(results)["claims"]
    shown = []
    tally: Counter[str] = Counter()
    for kind in KINDS:
        total = sum(by_kind[kind].values())
        shown.append(f"{by_kind[kind].get(REPRODUCED, 0)} of {total}" if total else "")
        tally.update(by_kind[kind])
    return [*shown, *(str(tally[name] or "") for name in OTHER)]


def table(results: list[StoredFigure]) -> str:
    """Table of all results in Markdown, a row per figure and a row of sums."""
    rows = [
        "| figure | paper | rules | points within 2 % "
        f"| {' | '.join(f'{kind}s' for kind in KINDS)} | partial | missed | n. c. |",
        f"|{'---|' * 11}",
    ]
    for figure in results:
        rules = params.judged_rules(figure.result["params"]) if _has_rules(figure) else ""
        near = headline([figure])["points"]
        points = f"{near['within']['2 %']:.0%} of {near['judged']}" if near["judged"] else ""
        facts = [f"`{figure.entry.id}`", figure.result["reference"], rules, points]
        rows.append(f"| {' | '.join([*facts, *cells([figure])])} |")
    rows.append(f"| **all** | | | | {' | '.join(f'**{cell}**' for cell in cells(results))} |")
    return "\n".join(rows)


def _has_rules(figure: StoredFigure) -> bool:
    return "rules" in figure.result["params"]


def quick_sums(results: list[StoredFigure]) -> str:
    """Verdicts at the quick profile with and without public traces, as a batch sums them up."""
    reference = json.loads(QUICK.read_text(encoding="utf-8"))["figures"]
    shown = ["```text"]
    for public in (True, False):
        rows = []
        for figure in results:
            verdicts = _record(reference[figure.entry.id], public)["claims"]
            rows += [
                {**claim, "verdict": verdicts[claim["id"]]["verdict"]} for claim in figure.claims
            ]
        shown.append(f"verdicts: {'; '.join(verdict_counts(rows))}   {_DATA[public]}")
    return "\n".join([*shown, "```"])


#: Whether public traces are available -> remark on the sum of the verdicts.
_DATA = {True: "# with the public traces", False: "# without them"}


def _record(records: list[dict[str, Any]], public: bool) -> dict[str, Any]:
    """Record of a figure with all its public files, or with stand-ins for most of them."""
    wanted = ("no public files", "public" if public else "stand-ins")
    found = [record for record in records if record["data"] in wanted]
    return max(found, key=lambda record: len(record["stand_in"] or ""))


def main() -> int:
    """Write the tables."""
    results = committed()
    marks.write(README, "status", readme_table(results))
    marks.write(PAGE, "sums", sums(results))
    marks.write(PAGE, "status", table(results))
    marks.write(START, "quick", quick_sums(results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
