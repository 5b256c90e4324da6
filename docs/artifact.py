"""Write the tables of ARTIFACT.md from the claims of the committed results: `make artifact`.

artifact_claims.csv selects the claims, artifact_costs.csv has the measured costs of their figures.
"""

from __future__ import annotations

import csv
import itertools
import json
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import artifact_costs as costs
import marks

from repro.figures import saved
from repro.figures.claims import OUTCOMES

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "ARTIFACT.md"
START = ROOT / "docs" / "start.md"
#: Values of the quick profile, by figure and state of the public data.
QUICK = ROOT / "figures" / "quick.json"
#: Papers in README's order.
PAPERS = {
    "tiresias": "Tiresias, NSDI 2019",
    "muri": "Muri, SIGCOMM 2022",
    "gavel": "Gavel, OSDI 2020",
    "liquid": "Liquid, TPDS 2022",
    "pcs": "PCS, 2024",
}
#: Beginnings of the rows of the tables of docs/start.md that have measured times.
TIMES = (
    '`pip install -c constraints.txt -e ".[all]"`',
    "`make figures`, first time",
    "`make test`",
    "`make paper`",
)
#: Largest number of values that a cell lists one by one.
_MAX_LISTED = 6


@dataclass(frozen=True)
class Claim:
    """A selected claim: its row of artifact_claims.csv, its committed result, its quick verdict."""

    id: str
    figure: str
    words: str
    where: str
    result: dict[str, Any]
    quick: str

    @property
    def paper(self) -> str:
        """Paper of the claim's figure."""
        return self.figure.split("/")[0]


def results() -> dict[str, dict[str, Any]]:
    """Committed results of the claims' figures, in the order of their first claim."""
    found = {}
    for figure in costs.figures():
        path = ROOT / "figures" / figure / saved.RESULT
        if not path.is_file():
            raise ValueError(f"{costs.CLAIMS.name}: figures/ has no result of {figure}")
        found[figure] = json.loads(path.read_text(encoding="utf-8"))
    return found


def claims(of_figures: dict[str, dict[str, Any]]) -> list[Claim]:
    """Selected claims with their rows of the committed results."""
    quick = json.loads(QUICK.read_text(encoding="utf-8"))["figures"]
    selected = []
    for row in costs.read(costs.CLAIMS):
        figure = row["figure"]
        by_id = {claim["id"]: claim for claim in of_figures[figure]["claims"]}
        if row["claim"] not in by_id:
            raise ValueError(f"{costs.CLAIMS.name}: {figure} has no claim {row['claim']}")
        result = by_id[row["claim"]]
        verdict = quick_verdict(quick.get(figure, []), row["claim"])
        selected.append(Claim(row["id"], figure, row["words"], row["where"], result, verdict))
    return selected


def quick_verdict(records: list[dict[str, Any]], claim: str) -> str:
    """Verdict of a claim at the quick profile, on public data if the reference has it."""
    by_data = {
        record["data"]: record["claims"][claim]["verdict"]
        for record in records
        if claim in record["claims"]
    }
    for data in ("no public files", "public"):
        if data in by_data:
            return str(by_data[data])
    return "".join(f"{verdict} (without public files)" for verdict in by_data.values())


def summary(selected: list[Claim]) -> str:
    """How many of the selected claims come out."""
    tally = Counter(claim.result["verdict"] for claim in selected)
    counted = [f"{tally[outcome]} {outcome}" for outcome in OUTCOMES if tally[outcome]]
    return f"Of {len(selected)} major claims: {', '.join(counted)}."


def requirements() -> str:
    """What a reviewer's computer needs, and times as docs/start.md has them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    environment, *_ = time_cells(TIMES[0])
    memory_mb = [int(row["memory_mb"]) for row in costs.read(costs.COSTS) if row["memory_mb"]]
    with (ROOT / "traces" / "registry.csv").open(encoding="utf-8") as file:
        downloads = [row for row in csv.DictReader(file) if not row["member"]]
    megabytes = sum(int(row["bytes"]) for row in downloads) / 1e6
    rows = [
        "| what | needed |",
        "|---|---|",
        "| processor | 2 cores; no GPU |",
        f"| software | Linux or macOS, git, make, Python {project['requires-python']} |",
        f"| disk, environment | {environment} |",
        f"| disk, public traces | {megabytes:.0f} MB in {len(downloads)} downloads |",
        f"| memory | {max(memory_mb) / 1000:.1f} GB, the highest of {len(memory_mb)} runs |",
        "",
        "| command | took (2 cores) |",
        "|---|---|",
    ]
    rows += [f"| {beginning} | {time_cells(beginning)[-1]} |" for beginning in TIMES]
    for profile in costs.PROFILES:
        of_profile = [row for row in costs.read(costs.COSTS) if row["profile"] == profile]
        measured = [row for row in of_profile if row["cpu_s"]]
        took = f"{_duration(measured)} of CPU time"
        if len(measured) < len(of_profile):
            took += f" for {len(measured)} of {len(of_profile)}; the others are not measured"
        rows.append(f"| all experiments of section 7, profile {profile} | {took} |")
    return "\n".join(rows)


def time_cells(beginning: str) -> list[str]:
    """Cells after the first one of the row of docs/start.md that begins with a text."""
    for line in START.read_text(encoding="utf-8").splitlines():
        if line.startswith(f"| {beginning} |"):
            return [cell.strip() for cell in line.strip("| ").split(" | ")][1:]
    raise ValueError(f"start.md has no row that begins with {beginning}")


def evaluation(of_figures: dict[str, dict[str, Any]], selected: list[Claim]) -> str:
    """Claims and experiments, paper by paper."""
    measured = {(row["figure"], row["profile"]): row for row in costs.read(costs.COSTS)}
    for key in itertools.product(of_figures, costs.PROFILES):
        if key not in measured:
            raise ValueError(f"{costs.COSTS.name}: no row of {' at profile '.join(key)}")
    parts = []
    for paper, name in PAPERS.items():
        of_paper = [claim for claim in selected if claim.paper == paper]
        if not of_paper:
            raise ValueError(f"{costs.CLAIMS.name}: no claim of {paper}")
        parts.append(f"#### {name}")
        parts.append(claim_table(of_paper))
        parts.append(experiment_table(of_figures, of_paper, measured))
        if missed := deviations(of_paper):
            parts.append(f"What did not come out:\n\n{missed}")
    return "\n\n".join(parts)


def claim_table(selected: list[Claim]) -> str:
    """A row per claim: words of the paper, numbers and verdict."""
    rows = [
        "| claim | the paper says | compared | published | ours | tolerance | verdict | quick |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for claim in selected:
        row = claim.result
        published, ours = (_listed(row, side) for side in ("published", "ours"))
        verdict = row["verdict"] + (", on a stand-in" if row["stand_in"] else "")
        cells = [
            claim.id,
            f"{claim.words} ({claim.where})",
            row["what"],
            published,
            ours,
            row["tolerance"],
            verdict,
            claim.quick,
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _listed(row: dict[str, Any], side: str) -> str:
    """Values of a claim in words; of many values the range."""
    values = row[side]
    if isinstance(values, list) and len(values) > _MAX_LISTED:
        ends = [min(values), max(values)]
        return f"{' … '.join(saved.show(end) for end in ends)} ({len(values)} values)"
    published, ours, where = saved.shown_values(row)
    shown = published if side == "published" else ours
    return f"{shown} ({where})" if where and side == "published" and row["judged"] > 1 else shown


def experiment_table(
    of_figures: dict[str, dict[str, Any]],
    selected: list[Claim],
    measured: dict[tuple[str, str], dict[str, str]],
) -> str:
    """A row per figure: command, claims, CPU time, and what the command prints."""
    numbers = {figure: number for number, figure in enumerate(of_figures, start=1)}
    rows = [
        "| experiment | of the paper | command | claims | CPU, quick | CPU, paper | prints |",
        "|---|---|---|---|---|---|---|",
    ]
    for figure in dict.fromkeys(claim.figure for claim in selected):
        tested = [
            f"{claim.id} `{claim.result['id']}`" for claim in selected if claim.figure == figure
        ]
        cells = [
            f"E{numbers[figure]}",
            of_figures[figure]["reference"],
            f"`repro run {figure} --profile paper`",
            ", ".join(tested),
            *(_duration([measured[figure, profile]]) for profile in costs.PROFILES),
            "; ".join(saved.verdict_counts(of_figures[figure]["claims"])),
        ]
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def _duration(rows: costs.Rows) -> str:
    """CPU time of all rows in words."""
    if not all(row["cpu_s"] for row in rows):
        return "not measured"
    seconds = sum(float(row["cpu_s"]) for row in rows)
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def deviations(selected: list[Claim]) -> str:
    """A list of the claims with a recorded deviation."""
    return "\n".join(
        f"- {claim.id}, {claim.result['verdict']}: {claim.result['deviation']}."
        for claim in selected
        if claim.result.get("deviation")
    )


def parts() -> dict[str, str]:
    """Generated parts of ARTIFACT.md by the name of their marks."""
    of_figures = results()
    selected = claims(of_figures)
    return {
        "summary": summary(selected),
        "requirements": requirements(),
        "evaluation": evaluation(of_figures, selected),
    }


def main() -> int:
    """Write the generated parts."""
    for name, text in parts().items():
        marks.write(PAGE, name, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
