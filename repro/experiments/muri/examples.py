"""Muri's worked examples: charts of the micro-simulation, grouping plans, offsets."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import pandas as pd

from repro.perf.stage_simulation import busy_shares, simulate_group, steady_period
from repro.perf.stages import efficiency, interleaving_time

Stages = Mapping[str, Sequence[float]]


def bars(rows: pd.DataFrame, resources: Sequence[str], until: float | None = None) -> pd.DataFrame:
    """Return the rows of a micro-simulation as bars of a chart, one lane per resource.

    Parameters
    ----------
    rows : DataFrame
        From `repro.perf.stage_simulation`.
    resources : sequence of str
        Order of the lanes.
    until : float, optional
        Leave out what starts at this time (s) or later.

    Returns
    -------
    DataFrame
        The rows that last, sorted by group and resource, with lane (group and resource) and
        text (job and iteration).

    Examples
    --------
    >>> rows = simulate_group({"A": (2, 0)}, resources=("CPU", "GPU"), iterations=2)
    >>> bars(rows, ("CPU", "GPU"))["text"].tolist()
    ['A1', 'A2']
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
    """Return the period of a group whose offsets are given, by the closed form.

    Parameters
    ----------
    stages : mapping of str to sequence of float
        Job to its time on each resource (s).
    offsets : mapping of str to int
        How many stages each member is ahead.

    References
    ----------
    Muri, SIGCOMM 2022, Eq 3.

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
        Job to its time on each resource (s).
    resources : sequence of str
        Names of the resources.

    Returns
    -------
    rows : DataFrame
        Every stage, with plan; the group is named after its members (``A+B``).
    table : DataFrame
        One row per group: plan, group, period (s) and gamma of the run, idle share per resource
        (``idle CPU``), period_closed and gamma_closed by Eq 3 and 4.

    References
    ----------
    Muri, SIGCOMM 2022, Figure 4, Eq 1 to 4.

    Examples
    --------
    >>> stages = {"A": (2, 1), "C": (2, 1)}
    >>> _, table = simulate_plans({"plan 2": [["A", "C"]]}, stages, ("CPU", "GPU"))
    >>> table[["period", "gamma", "idle GPU"]].iloc[0].tolist()
    [4.0, 0.75, 0.5]
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

    Parameters
    ----------
    jobs : sequence of str
        Names.

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
    """Return the stages of two jobs run one after the other on every resource, as one job.

    Parameters
    ----------
    one, other : sequence of float
        Stage times (s).

    Examples
    --------
    >>> fused((2, 1), (2, 1))
    (4, 2)
    """
    return tuple(a + b for a, b in zip(one, other, strict=True))


def group_periods(rows: pd.DataFrame) -> dict[str, float]:
    """Return the longest steady period (s) of each group of a micro-simulation.

    Parameters
    ----------
    rows : DataFrame
        From `repro.perf.stage_simulation.simulate_groups`.

    Examples
    --------
    >>> group_periods(simulate_group({"A": (2, 1), "B": (1, 2)}, resources=("CPU", "GPU")))
    {'': 3.0}
    """
    by_group = rows.groupby("group")
    return {str(group): float(steady_period(of_one).max()) for group, of_one in by_group}
