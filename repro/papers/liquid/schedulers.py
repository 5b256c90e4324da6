"""Runs of Liquid's jobs under its schedulers, compared with the published bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from repro.figures.sweep import Case, keep_all_records
from repro.model.policy import Policy, make
from repro.model.records import makespan
from repro.papers.liquid import figure_data

if TYPE_CHECKING:
    from repro.figures.figure import FigureRun

#: Series of a figure -> name and settings of its policy. Any other series is the name of a policy.
_VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "liquid-printed": ("liquid", {"score": "paper"}),
    "liquid-artifact": ("liquid", {"score": "artifact"}),
    "hived": ("hived", {"hived_order": "random"}),
}


def policy(series: str, **settings: Any) -> Policy:
    """Policy of a series."""
    name, variant = _VARIANTS.get(series, (series, {}))
    return make(name, **variant, **settings)


@dataclass(frozen=True)
class OverSeeds:
    """Measure: average JCT and makespan (s) over seeds, with standard deviations.

    A deterministic policy on a fixed trace runs with one seed.
    """

    seeds: int

    def __call__(self, case: Case) -> dict[str, float]:
        """Mean (avg_jct_s, makespan_s), standard deviation (_sd) and minimum (_lowest) of each."""
        is_random = getattr(case.policy, "is_random", False) or case.options.get("gap_s", 0)
        num_seeds = self.seeds if is_random else 1
        runs = [keep_all_records(replace(case, seed=seed)) for seed in range(num_seeds)]
        jct = np.array([run.jobs["jct"].mean() for run in runs])
        span = np.array([makespan(run) for run in runs])
        statistics: dict[str, float] = {}
        for name, values in (("avg_jct_s", jct), ("makespan_s", span)):
            spread = float(values.std(ddof=1)) if len(values) > 1 else 0.0
            statistics |= {name: float(values.mean()), f"{name}_sd": spread}
            statistics[f"{name}_lowest"] = float(values.min())
        return statistics


def batches(fig: FigureRun) -> pd.DataFrame:
    """Run the batch of Fig 19 on every number of nodes under every series.

    Columns: nodes, series, those of `OverSeeds`.
    """
    inputs = fig.inputs
    cases = {}
    for nodes in inputs.nodes:
        for series in inputs.series:
            # despite its name, jobs_per_node is the number of jobs for five nodes
            jobs = inputs.jobs_per_node * nodes // 5
            cases[nodes, series] = Case(
                "liquid-batch-jobs",
                f"{nodes}x{inputs.gpus_per_node}",
                policy(series, times=inputs.times),
                "paper",
                options={"jobs": jobs},
                measure=OverSeeds(inputs.seeds.get(series, inputs.seeds["others"])),
            )
    return as_table(fig.sweep(cases, inputs.workers), ["nodes", "series"])


def as_table(results: Mapping[Any, Any], names: list[str]) -> pd.DataFrame:
    """Results of a sweep as a table whose first columns are the labels of its cases."""
    table = pd.DataFrame(results).T.drop(columns="wall_s").astype(float)
    return table.rename_axis(names).reset_index()


def published_bars(figures: Sequence[str], liquid: str = "liquid") -> pd.DataFrame:
    """Published bars of figures: quantity, group, series (our policies), published, certainty.

    ``liquid`` is the series compared with the paper's Liquid.
    """
    bars = pd.concat([figure_data.bars(figure) for figure in figures])
    bars["series"] = bars["series"].replace(figure_data.POLICIES | {"liquid": liquid})
    return bars[["quantity", "group", "series", "published", "certainty"]]
