"""Runs of Liquid's jobs under its schedulers, and what they come to beside the published bars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.figures.sweep import Case, whole
from repro.model.policy import Policy, make
from repro.model.records import makespan
from repro.papers.liquid import published

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Variants of one policy that figures draw beside each other.
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "liquid-printed": ("liquid", {"score": "paper"}),
    "liquid-artifact": ("liquid", {"score": "artifact"}),
    "hived": ("hived", {"hived_order": "random"}),
}


def policy(series: str, **settings: Any) -> Policy:
    """Return the policy of a series."""
    name, own = _VARIANTS.get(series, (series, {}))
    return make(name, **own, **settings)


@dataclass(frozen=True)
class OverSeeds:
    """Measure: average JCT and makespan (s) over so many seeds, and their standard deviations.

    One seed is enough for a policy that draws nothing on a trace that is not drawn.
    """

    seeds: int

    def __call__(self, case: Case) -> dict[str, float]:
        """Return avg_jct_s, makespan_s, avg_jct_s_sd, makespan_s_sd, and the lowest of each."""
        drawn = getattr(case.policy, "draws", False) or case.options.get("gap_s", 0)
        runs = [whole(replace(case, seed=seed)) for seed in range(self.seeds if drawn else 1)]
        jct = np.array([run.jobs["jct"].mean() for run in runs])
        span = np.array([makespan(run) for run in runs])
        found: dict[str, float] = {}
        for name, values in (("avg_jct_s", jct), ("makespan_s", span)):
            spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
            found |= {name: float(values.mean()), f"{name}_sd": spread}
            found[f"{name}_lowest"] = float(values.min())
        return found


def batches(fig: FigureRun) -> pd.DataFrame:
    """Run the batch of Fig 19 on every size under every series: nodes, series, see `OverSeeds`."""
    inputs = fig.inputs
    cases = {}
    for nodes in inputs.nodes:
        for series in inputs.series:
            cases[nodes, series] = Case(
                "liquid-batch-jobs",
                f"{nodes}x{inputs.gpus_per_node}",
                policy(series, times=inputs.times),
                "paper",
                options={"jobs": inputs.jobs_per_node * nodes // 5},
                measure=OverSeeds(inputs.seeds.get(series, inputs.seeds["others"])),
            )
    return tabled(fig.sweep(cases, inputs.workers), ["nodes", "series"])


def tabled(found: Mapping[Any, Any], names: list[str]) -> pd.DataFrame:
    """Return what a sweep found as a table whose first columns are the labels of its cases."""
    table = pd.DataFrame(found).T.drop(columns="wall_s").astype(float)
    return table.rename_axis(names).reset_index()


def beside(
    table: pd.DataFrame, figures: list[str], quantity: str, liquid: str = "liquid"
) -> pd.DataFrame:
    """Return the published bars of figures with ours: quantity, group, series, published, ours.

    ``liquid`` is the series that stands for the paper's Liquid.
    """
    bars = pd.concat([published.bars(figure) for figure in figures])
    bars = bars[bars["quantity"] == quantity].assign(
        series=lambda rows: rows["series"].replace(published.POLICIES | {"liquid": liquid})
    )
    ours = table.assign(group=table["group"].astype(str)).rename(columns={quantity: "ours"})
    return bars.merge(ours[["group", "series", "ours"]], on=["group", "series"])


def reduction(table: pd.DataFrame, value: str, liquid: str, others: list[str]) -> list[float]:
    """Return by how many per cent Liquid's value lies below each other's, mean over the groups."""
    wide = table.pivot_table(index="group", columns="series", values=value)
    return [float((100 * (1 - wide[liquid] / wide[one])).mean()) for one in others]
