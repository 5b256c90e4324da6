"""Muri's worked examples: charts of the micro-simulation, grouping plans, offsets."""

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd

from repro.papers.muri.stage_simulation import (
    busy_shares,
    simulate_group,
    simulate_groups,
    steady_period,
)
from repro.perf.stages import efficiency, interleaving_time

#: Stage times of each job, by its name.
StagesByJob = Mapping[str, Sequence[float]]


def bars(rows: pd.DataFrame, resources: Sequence[str], until: float | None = None) -> pd.DataFrame:
    """Bars of a micro-simulation before ``until``, one lane per group and resource."""
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


def stalls(
    rows: pd.DataFrame,
    groups: Mapping[str, Mapping[str, int]],
    stages: StagesByJob,
    resources: Sequence[str],
) -> pd.DataFrame:
    """Time in which groups wait for other groups, as rows of job ``stalled``.

    The delay of a stage is its start minus its start when the group runs alone. A stall is the
    growth of the delay from one stage on a resource to the next.
    """
    key = ["group", "resource", "job", "iteration"]
    iterations = int(rows["iteration"].max())
    alone = pd.concat(
        simulate_groups({name: members}, stages, resources=resources, iterations=iterations)
        for name, members in groups.items()
    )
    late = rows.join(alone.set_index(key)["start"].rename("alone"), on=key).sort_values("start")
    delay = late["start"] - late.pop("alone")
    stall = delay.groupby([late["group"], late["resource"]]).diff().fillna(delay)
    gaps = late.assign(start=late["start"] - stall, end=late["start"], job="stalled")
    return gaps[stall > 1e-9]


def offset_period(stages: StagesByJob, offsets: Mapping[str, int]) -> float:
    """Period of a group whose members are ``offsets`` stages ahead (Eq 3)."""
    resources = len(stages[next(iter(offsets))])
    period = 0.0
    for step in range(resources):
        in_step = [stages[job][(offset + step) % resources] for job, offset in offsets.items()]
        period += max(in_step)
    return period


def simulate_plans(
    plans: Mapping[str, Sequence[Sequence[str]]], stages: StagesByJob, resources: Sequence[str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Simulate the groups of several plans: stage rows, and a table with the closed forms.

    The table has the period of each group and the idle share of each resource. Columns
    ``period_closed`` and ``gamma_closed`` are period and efficiency by Eq 3 and 4.
    """
    frames = []
    records = []
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
                    **{f"idle {name}": 1 - float(share) for name, share in busy.items()},
                    "period_closed": interleaving_time(times),
                    "gamma_closed": efficiency(times),
                }
            )
    return pd.concat(frames, ignore_index=True), pd.DataFrame(records)


def pair_plans(jobs: Sequence[str]) -> dict[str, list[list[str]]]:
    """All ways to split an even number of jobs into pairs, named ``A+B, C+D``."""
    if not jobs:
        return {"": []}
    plans = {}
    for partner in jobs[1:]:
        others = [job for job in jobs if job not in (jobs[0], partner)]
        for groups in pair_plans(others).values():
            plan = [[jobs[0], partner], *groups]
            plans[", ".join("+".join(pair) for pair in plan)] = plan
    return plans
