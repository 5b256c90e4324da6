"""Gavel's hierarchical example: jobs of two entities, with fairness and FIFO inside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.optimise.entities import hierarchical_shares


def entity_shares(
    jobs: Mapping[str, Mapping[str, Any]],
    entities: Mapping[str, Mapping[str, Any]],
    gpus: Mapping[str, int],
    **settings: Any,
) -> pd.DataFrame:
    """Return the allocation of a hierarchical policy, one row per job.

    Parameters
    ----------
    jobs : mapping of str to mapping
        Job to entity, weight (1 if left out) and steps_per_s by GPU type (1 if left out).
    entities : mapping of str to mapping
        Entity to weight (1 if left out) and inner (``fairness`` or ``fifo``).
    gpus : mapping of str to int
        GPU type to GPUs.
    **settings
        water_filling and lp_backend of the policy.

    Returns
    -------
    DataFrame
        job, entity, one column of time shares per GPU type, share (their sum), normalised
        (effective throughput over that of an equal share of all GPUs, for one GPU's time).

    References
    ----------
    Gavel, OSDI 2020, section 4.3, Figure 6.

    Examples
    --------
    >>> jobs = {"1": {"entity": "a"}, "2": {"entity": "a"}, "3": {"entity": "b"}}
    >>> entities = {"a": {"inner": "fairness"}, "b": {"inner": "fifo"}}
    >>> entity_shares(jobs, entities, {"v100": 1})["share"].round(6).tolist()
    [0.25, 0.25, 0.5]
    """
    types = list(gpus)
    speeds = np.array(
        [[job.get("steps_per_s", {}).get(kind, 1.0) for kind in types] for job in jobs.values()]
    )
    counts = np.array(list(gpus.values()), dtype=float)
    shares = hierarchical_shares(
        speeds,
        [1.0] * len(jobs),
        [float(job.get("weight", 1)) for job in jobs.values()],
        [job["entity"] for job in jobs.values()],
        {name: float(one.get("weight", 1)) for name, one in entities.items()},
        {name: one["inner"] for name, one in entities.items()},
        counts,
        **settings,
    )
    equal = speeds @ counts / counts.sum()
    return pd.DataFrame(
        {
            "job": list(jobs),
            "entity": [job["entity"] for job in jobs.values()],
            **dict(zip(types, shares.T, strict=True)),
            "share": shares.sum(axis=1),
            "normalised": (speeds * shares).sum(axis=1) / equal,
        }
    )


def stages(
    jobs: Mapping[str, Mapping[str, Any]],
    entities: Mapping[str, Mapping[str, Any]],
    gpus: Mapping[str, int],
    leaving: Sequence[str],
) -> pd.DataFrame:
    """Return the allocation of all jobs, then again after each of some jobs has left.

    Parameters
    ----------
    jobs, entities, gpus
        As for `entity_shares`.
    leaving : sequence of str
        Jobs in the order in which they end.

    Returns
    -------
    DataFrame
        stage (``all jobs``, ``job 4 ends`` …), present, and the columns of `entity_shares`; jobs
        that have left have a share of 0.

    Examples
    --------
    >>> jobs = {"1": {"entity": "a"}, "2": {"entity": "b"}, "3": {"entity": "b"}}
    >>> entities = {"a": {"inner": "fairness"}, "b": {"inner": "fifo"}}
    >>> table = stages(jobs, entities, {"v100": 1}, ["2"])
    >>> table["share"].round(6).tolist()
    [0.5, 0.5, 0.0, 0.5, 0.0, 0.5]
    """
    frames = []
    for number in range(len(leaving) + 1):
        gone = set(leaving[:number])
        here = {name: job for name, job in jobs.items() if name not in gone}
        table = entity_shares(here, entities, gpus).set_index("job").reindex(list(jobs))
        table["entity"] = [job["entity"] for job in jobs.values()]
        stage = f"{leaving[number - 1]} ends" if number else "all jobs"
        table["present"] = [name not in gone for name in jobs]
        frames.append(table.fillna(0.0).reset_index().assign(stage=stage))
    return pd.concat(frames, ignore_index=True)


def weighted_cases(
    jobs: Mapping[str, Mapping[str, Any]],
    inner: Mapping[str, str],
    cases: Mapping[str, Mapping[str, Mapping[str, float]]],
    gpus: Mapping[str, int],
) -> pd.DataFrame:
    """Return the allocation for several choices of weights.

    Parameters
    ----------
    jobs, gpus
        As for `entity_shares`.
    inner : mapping of str to str
        Entity to the policy inside it.
    cases : mapping of str to mapping
        Case to weights of ``entities`` and of ``jobs`` (1 for those left out).

    Returns
    -------
    DataFrame
        case and the columns of `entity_shares`.

    Examples
    --------
    >>> jobs = {"1": {"entity": "a"}, "2": {"entity": "b"}}
    >>> cases = {"1:3": {"entities": {"a": 1, "b": 3}, "jobs": {}}}
    >>> inner = {"a": "fairness", "b": "fifo"}
    >>> weighted_cases(jobs, inner, cases, {"v100": 1})["share"].round(6).tolist()
    [0.25, 0.75]
    """
    frames = []
    for name, case in cases.items():
        entities = {
            one: {"inner": how, "weight": case["entities"][one]} for one, how in inner.items()
        }
        weighted = {job: {**one, "weight": case["jobs"].get(job, 1)} for job, one in jobs.items()}
        frames.append(entity_shares(weighted, entities, gpus).assign(case=name))
    return pd.concat(frames, ignore_index=True)
