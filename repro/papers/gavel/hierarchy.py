"""Gavel's hierarchical policy: worked examples (Fig 6, lecture) and timelines (Fig 11)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.figures.points import thinned
from repro.model.records import Result
from repro.papers.gavel.published import curves
from repro.perf.throughput import ThroughputTable
from repro.solve.entities import Hierarchy, hierarchical_shares
from repro.solve.max_min import normalised

Table = Mapping[str, Mapping[str, Any]]


def entity_shares(jobs: Table, entities: Table, gpus: Mapping[str, int]) -> pd.DataFrame:
    """Return the allocation of the hierarchical policy, one row per job.

    ``normalised`` is the throughput over that of an equal share of all GPUs, for one GPU's time.
    """
    types = list(gpus)
    speeds = np.array(
        [[job.get("steps_per_s", {}).get(one, 1.0) for one in types] for job in jobs.values()]
    )
    counts = np.array(list(gpus.values()), dtype=float)
    one_each = np.ones(len(jobs))
    shares = hierarchical_shares(
        normalised(speeds, one_each, one_each, counts, "job {}".format),
        [float(job.get("weight", 1)) for job in jobs.values()],
        [job["entity"] for job in jobs.values()],
        Hierarchy(
            {name: float(one.get("weight", 1)) for name, one in entities.items()},
            {name: one["inner"] for name, one in entities.items()},
        ),
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
    jobs: Table, entities: Table, gpus: Mapping[str, int], leaving: Sequence[str]
) -> pd.DataFrame:
    """Return `entity_shares` of all jobs, then again after each of some jobs has left."""
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


def throughput_steps(
    result: Result,
    trace: pd.DataFrame,
    perf: ThroughputTable,
    gpus: Mapping[str, int],
    *,
    step_s: float,
    every: int,
    steps: int,
) -> pd.DataFrame:
    """Return each job's throughput over that of its equal share of all GPUs (section 4.3)."""
    types = list(gpus)
    counts = np.array([gpus[one] for one in types], dtype=float)
    speeds = np.array([perf.speeds(model, 1, types) for model in trace["model"]])
    reference = [perf.steps_per_s(model, 1, perf.reference) for model in trace["model"]]
    scale = np.array(reference) / (speeds @ counts / counts.sum())
    spans = result.intervals
    rows: list[tuple[int, int, str, float]] = []
    for start in range(0, steps, every):
        # the middle of a timestep lies between two changes
        now = (start + 0.5) * step_s
        held = spans[(spans["start"] <= now) & (now < spans["end"])]
        rates = held.groupby("job_id")["rate"].sum()
        here = trace[trace["submit_time"] <= now]
        for job, entity in zip(here["job_id"], here["entity"], strict=True):
            rows.append((start + 1, job, entity, float(rates.get(job, 0.0)) * scale[job]))
    return pd.DataFrame(rows, columns=["timestep", "job_id", "entity", "throughput"])


def beside(
    totals: Mapping[str, pd.DataFrame],
    steps: Mapping[tuple[str, str], pd.DataFrame],
    ours: Mapping[str, str],
    compare: bool,
) -> pd.DataFrame:
    """Return the published totals and throughputs of single jobs beside ours, as points.

    ``steps`` are `throughput_steps` by inner policy and instance, with the series that ``ours``
    names for each published one.
    """
    parts = []
    for (inner, instance), rows in steps.items():
        marks = curves(f"hierarchical_{inner}_{instance}")
        marks[["series", "job"]] = marks["series"].str.extract(r"(.*), job (\d+)")
        names = f"{inner}, {instance}, " + marks["series"]
        what = "throughput of job " + marks["job"]
        each = rows.set_index(["series", "timestep", "job_id"])["throughput"]
        places = [marks["series"].map(ours), marks["x"], marks["job"].astype(int)]
        found = each.reindex(pd.MultiIndex.from_arrays(places)).to_numpy()
        parts.append(marks.assign(series=names, quantity=what, ours=found))
        if instance == next(iter(steps))[1]:
            marks = thinned(totals[inner], ["series"])
            places = [marks["series"].map(ours), marks["x"]]
            total = each.groupby(["series", "timestep"]).sum()
            found = total.reindex(pd.MultiIndex.from_arrays(places)).to_numpy()
            names = f"{inner}, " + marks["series"]
            parts.append(marks.assign(series=names, quantity="total throughput", ours=found))
    points = pd.concat(parts).rename(columns={"mean": "published"}).assign(certainty="artifact")
    points = points[["series", "x", "quantity", "published", "ours", "certainty"]]
    return points if compare else points.assign(ours=None)
