"""Muri's worked examples: charts of the micro-simulation, grouping plans, offsets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd

from repro.perf.stage_simulation import busy_shares, simulate_group, steady_period
from repro.perf.stages import efficiency, interleaving_time

Stages = Mapping[str, Sequence[float]]


def bars(rows: pd.DataFrame, resources: Sequence[str], until: float | None = None) -> pd.DataFrame:
    """Return the rows of a micro-simulation as bars of a chart, one lane per group and resource.

    Rows that last no time, or start at ``until`` or later, are left out; lanes are sorted by group,
    then in the order of ``resources``. Added are lane and text (job and iteration).
    """
    lasting = rows[rows["end"] > rows["start"]]
    if until is not None:
        lasting = lasting[lasting["start"] < until]
    lanes = [
        f"{group} {resource}".strip()
        for group, resource in itertools.product(sorted(set(rows["group"])), resources)
    ]
    shown = lasting.assign(
        lane=(lasting["group"] + " " + lasting["resource"]).str.strip(),
        text=lasting["job"] + lasting["iteration"].astype(str),
    )
    order = shown["lane"].map(lanes.index).sort_values(kind="stable")
    return shown.loc[order.index].reset_index(drop=True)


def offset_period(stages: Stages, offsets: Mapping[str, int]) -> float:
    """Return the period of a group whose members are ``offsets`` stages ahead (Eq 3).

    Examples
    --------
    >>> offset_period({"A": (1, 2, 1, 1), "B": (1, 1, 2, 1)}, {"A": 0, "B": 1})
    5.0
    """
    resources = len(stages[next(iter(offsets))])
    steps = range(resources)
    return float(
        sum(max(stages[job][(at + j) % resources] for job, at in offsets.items()) for j in steps)
    )


def simulate_plans(
    plans: Mapping[str, Sequence[Sequence[str]]], stages: Stages, resources: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Run every group of some grouping plans and set the closed forms beside it.

    Parameters
    ----------
    plans : mapping of str to sequence of sequence of str
        Plan to its groups of jobs.
    stages : mapping of str to sequence of float
        Job to its time on each of the resources (s).
    resources : sequence of str
        Names of the resources.

    Returns
    -------
    rows : DataFrame
        Every stage, with plan; the group is named after its members (``A+B``).
    table : DataFrame
        One row per group: plan, group, period (s) and gamma of the run, idle share per resource
        (``idle CPU``), period_closed and gamma_closed by Eq 3 and 4.
    """
    frames, records = [], []
    for plan, groups in plans.items():
        for members in groups:
            group = "+".join(members)
            rows = simulate_group({job: stages[job] for job in members}, resources=resources)
            frames.append(rows.assign(plan=plan, group=group))
            busy = busy_shares(rows, resources)
            times = [tuple(stages[job]) for job in members]
            records.append(
                {
                    "plan": plan,
                    "group": group,
                    "period": float(steady_period(rows).max()),
                    "gamma": float(busy.mean()),
                    **{f"idle {name}": 1 - float(share) for name, share in busy.items()},
                    "period_closed": interleaving_time(times),
                    "gamma_closed": efficiency(times),
                }
            )
    return pd.concat(frames, ignore_index=True), pd.DataFrame(records)


def pair_plans(jobs: Sequence[str]) -> dict[str, list[list[str]]]:
    """Return every way to split an even number of jobs into pairs, named ``A+B, C+D``.

    Examples
    --------
    >>> list(pair_plans("ABCD"))
    ['A+B, C+D', 'A+C, B+D', 'A+D, B+C']
    """
    if not jobs:
        return {"": []}
    found = {}
    for other in jobs[1:]:
        rest = [job for job in jobs if job not in (jobs[0], other)]
        for groups in pair_plans(rest).values():
            plan = [[jobs[0], other], *groups]
            found[", ".join("+".join(pair) for pair in plan)] = plan
    return found


def fused(one: Sequence[float], other: Sequence[float]) -> tuple[float, ...]:
    """Return two jobs run one after the other on every resource as the stages of one job (s)."""
    return tuple(a + b for a, b in zip(one, other, strict=True))


def group_periods(rows: pd.DataFrame) -> dict[str, float]:
    """Return the longest steady period (s) of each group of a micro-simulation."""
    by_group = rows.groupby("group")
    return {str(group): float(steady_period(of_one).max()) for group, of_one in by_group}
