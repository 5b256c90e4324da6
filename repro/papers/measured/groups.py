"""Groups of two to four jobs measured on one GPU, next to the interleaving model of Muri.

A group ran in mode ``lock``, with one lock per resource as in Muri, or ``free``, side by side. The
table is ``traces/measured/interleave.csv``, as `repro.papers.liquid.measured.rows` reads it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from repro.base.errors import ParamError, TraceError, refuse_unknown
from repro.base.typing import Floats
from repro.perf.contention import Contention
from repro.perf.stages import MEASURED_STAGES, Stages, interleaving_time

RESOURCES = ("storage", "cpu", "gpu", "network")
#: Shortest stage alone (s) whose lengthening counts; shorter ones are mostly scatter.
SHORTEST_S = 1e-3


def stages_alone(rows: pd.DataFrame) -> dict[str, Stages]:
    """Stage times of each job alone (s per iteration): storage, CPU, GPU, network.

    Parameters
    ----------
    rows : DataFrame
        Rows of the table, with those of mode ``alone``.

    Examples
    --------
    >>> row = {"mode": "alone", "job": "a", "storage_s": 0.0, "cpu_s": 1.0, "gpu_s": 2.0}
    >>> stages_alone(pd.DataFrame([{**row, "network_s": 3.0}]))
    {'a': (0.0, 1.0, 2.0, 3.0)}
    """
    alone = rows[rows["mode"] == "alone"].set_index("job")
    return {
        str(job): tuple(times)
        for job, times in zip(alone.index, _times(alone).tolist(), strict=True)
    }


def groups(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per measured group: what was measured, and what the model of Muri predicts.

    Parameters
    ----------
    rows : DataFrame
        Rows of the table, one per member of a group.

    Returns
    -------
    DataFrame
        Columns ``mode``, ``group``, ``jobs``, ``size``; ``iterations`` of all members in the
        measured window; ``period_s``, members over the sum of their rates; ``predicted_s``, period
        T of Eq 3 from the stages alone; ``speed``, the sum over the members of rate / rate alone;
        ``predicted_speed``, the sum of the times of an iteration alone, divided by T.

    Examples
    --------
    >>> job = {"storage_s": 0.0, "cpu_s": 0.0, "gpu_s": 1.0, "network_s": 1.0, "iso_rate": 0.5}
    >>> alone = {**job, "mode": "alone", "group": "alone", "jobs": "a", "job": "a"}
    >>> member = {**job, "mode": "lock", "group": "0", "jobs": "a+a", "job": "a"}
    >>> member |= {"rate": 0.4, "norm": 0.8, "n": 10}
    >>> table = groups(pd.DataFrame([alone, member, member]))
    >>> table[["period_s", "predicted_s", "speed", "predicted_speed"]].round(6).to_numpy().tolist()
    [[2.5, 3.0, 1.6, 1.333333]]
    """
    alone = stages_alone(rows)
    table = []
    shared = rows[rows["mode"] != "alone"]
    for (mode, group, jobs), members in shared.groupby(["mode", "group", "jobs"], sort=False):
        period = interleaving_time([alone[job] for job in members["job"]])
        row = {"mode": mode, "group": group, "jobs": jobs, "size": len(members)}
        row["iterations"] = members["n"].sum()
        row["period_s"] = len(members) / members["rate"].sum()
        row["predicted_s"] = period
        row["speed"] = members["norm"].sum()
        row["predicted_speed"] = (1 / members["iso_rate"]).sum() / period
        table.append(row)
    return pd.DataFrame(table)


def lengthening(rows: pd.DataFrame) -> pd.DataFrame:
    """How much longer each stage of a job takes side by side with other jobs.

    Parameters
    ----------
    rows : DataFrame
        Rows of the table; those of mode ``free`` count.

    Returns
    -------
    DataFrame
        A row per member and resource: ``group``, ``job``, ``resource``; ``others``, the sum
        over the other members of the share of time that each spends in this stage; ``longer``,
        (time of the stage in the group) / (its time alone) - 1. Stages that are shorter than
        `SHORTEST_S` alone are left out.

    Raises
    ------
    TraceError
        If no row has the mode ``free``.
    """
    if not (rows["mode"] == "free").any():
        raise TraceError("measured groups: no rows of mode free; measure jobs side by side")
    alone = stages_alone(rows)
    parts = []
    for group, members in rows[rows["mode"] == "free"].groupby("group", sort=False):
        together = _times(members)
        times_alone = np.array([alone[job] for job in members["job"]])
        busy = together * members["rate"].to_numpy()[:, None]
        others = busy.sum(axis=0) - busy
        ratio = np.ones_like(times_alone)
        np.divide(together, times_alone, out=ratio, where=times_alone > 0)
        for column, resource in enumerate(RESOURCES):
            part = pd.DataFrame({"group": group, "job": members["job"], "resource": resource})
            part["others"] = others[:, column]
            part["longer"] = ratio[:, column] - 1
            parts.append(part[times_alone[:, column] >= SHORTEST_S])
    return pd.concat(parts, ignore_index=True)


def factor_sums(lengthened: pd.DataFrame) -> pd.DataFrame:
    """Sums by resource and group, from which the factors of `repro.perf.contention` follow.

    The factor of a resource is its sum of products divided by its sum of squares. This is the slope
    of the least-squares line through zero. A bootstrap over groups samples rows of this table.

    Parameters
    ----------
    lengthened : DataFrame
        Result of `lengthening`.

    Returns
    -------
    DataFrame
        Columns ``resource``, ``group``, ``product`` (of others and longer), ``square`` (of others)
        and ``stages``, the number of stages.

    Examples
    --------
    >>> rows = pd.DataFrame({"group": "0", "resource": "gpu", "others": [1, 2], "longer": [1, 1]})
    >>> factor_sums(rows).to_dict("records")
    [{'resource': 'gpu', 'group': '0', 'product': 3, 'square': 5, 'stages': 2}]
    """
    terms = lengthened[["resource", "group"]].assign(
        product=lengthened["others"] * lengthened["longer"],
        square=lengthened["others"] ** 2,
        stages=1,
    )
    return terms.groupby(["resource", "group"], sort=False, as_index=False).sum()


def predicted_speeds(rows: pd.DataFrame, resources: Sequence[str] = RESOURCES) -> pd.DataFrame:
    """Speed of each group side by side, predicted with factors fitted on all other groups.

    Parameters
    ----------
    rows : DataFrame
        Rows of the table.
    resources : sequence of str
        Resources with a factor; the others have factor 0.

    Returns
    -------
    DataFrame
        Columns ``group``, ``size``, ``speed`` (as of `groups`) and ``by_contention``, the
        prediction.

    Raises
    ------
    TraceError
        If a group has a stage of `SHORTEST_S` or more on a resource on which no other group has
        such a stage.
    """
    alone = stages_alone(rows)
    sums = factor_sums(lengthening(rows))
    table = []
    for group, members in rows[rows["mode"] == "free"].groupby("group", sort=False):
        own = set(sums.loc[sums["group"] == group, "resource"])
        others = sums[sums["group"] != group].groupby("resource")[["product", "square"]].sum()
        slopes = others["product"] / others["square"]
        unknown = [name for name in resources if name in own and name not in slopes]
        if unknown:
            raise TraceError(
                f"group {group!r}: no other group of mode free has stages of {SHORTEST_S:g} s or "
                f"more of {', '.join(unknown)}; measure another group"
            )
        # a resource on which the group has only shorter stages changes next to nothing
        fitted = dict.fromkeys(RESOURCES, 0.0)
        fitted |= {str(name): float(slope) for name, slope in slopes.items()}
        rates = model(fitted, resources).rates_of([alone[job] for job in members["job"]])
        row = {"group": group, "size": len(members), "speed": members["norm"].sum()}
        table.append({**row, "by_contention": sum(rates)})
    return pd.DataFrame(table)


def model(factors: Mapping[str, float], resources: Sequence[str] = RESOURCES) -> Contention:
    """Model of jobs that run side by side, with one factor per resource.

    A resource that is not in ``resources`` has factor 0. A negative factor counts as 0. ParamError
    if a resource of ``resources`` is unknown or has no factor.

    >>> model({"gpu": 0.5, "cpu": -0.1}, ["cpu", "gpu"])
    Contention(factors=(0.0, 0.0, 0.5, 0.0))
    """
    refuse_unknown("no resource", resources, RESOURCES)
    if absent := [name for name in resources if name not in factors]:
        raise ParamError(f"no factor of {', '.join(absent)}; give one, or leave the resource out")
    return Contention(
        tuple(max(0.0, factors[name]) if name in resources else 0.0 for name in RESOURCES)
    )


def _times(rows: pd.DataFrame) -> Floats:
    """Stage times (s), shape (rows, resources)."""
    times: Floats = rows[list(MEASURED_STAGES)].to_numpy(float)
    return times
