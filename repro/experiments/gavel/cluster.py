"""Gavel on clusters with more and fewer fast GPUs (Fig A6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pandas as pd

from repro.experiments.gavel.series import Label, cases
from repro.figures.sweep import Case

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun


def part_cases(fig: FigureRun) -> dict[str, dict[Label, Case]]:
    """Return ``V100s: <part> <role>`` over job rates, and ``all <role>`` over parts of V100s."""
    jct, static = dict(fig.inputs.jct), dict(fig.inputs.makespan)
    found: dict[str, dict[Label, Case]] = {"jct": {}, "makespan": {}}
    for part, rates in jct["rates"].items():
        series = {
            f"V100s: {part} {role}": {**jct[role], "cluster": fig.inputs.clusters[part]}
            for role in ("agnostic", "aware")
        }
        found["jct"] |= cases(fig, **{**jct, "series": series, "rates": rates})
    for part, cluster in fig.inputs.clusters.items():
        series = {f"all {role}": static[role] for role in ("agnostic", "aware")}
        changes = {**static, "cluster": cluster, "series": series, "jobs": [static["jobs"]]}
        for (label, _, seed), case in cases(fig, **changes).items():
            found["makespan"][label, float(part), seed] = case
    return found


def quotients(runs: pd.DataFrame, value: str) -> pd.DataFrame:
    """Return series, x, seed and quotient: the mean of agnostic over that of aware policies."""
    role = runs["series"].str.extract(r"^(.*?)\s*(agnostic|aware)$")
    runs = runs.assign(series=role[0], role=role[1])
    mean = runs.pivot_table(index=["series", "x", "seed"], columns="role", values=value)
    return (mean["agnostic"] / mean["aware"]).rename("quotient").reset_index()
