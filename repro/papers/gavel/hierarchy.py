"""Gavel's hierarchical policy: worked examples (Fig 6, lecture) and timelines (Fig 11)."""

import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from repro.figures.points import mark_uncounted
from repro.model.records import Result
from repro.papers.gavel import curves
from repro.perf.throughput import ThroughputTable
from repro.solve.entities import Hierarchy, hierarchical_shares
from repro.solve.max_min import normalised

#: Settings of each job or entity, by its name.
SettingsByName = Mapping[str, Mapping[str, Any]]


def entity_shares(
    jobs: SettingsByName, entities: SettingsByName, gpus: Mapping[str, int]
) -> pd.DataFrame:
    """Allocation of the hierarchical policy, one row per job.

    ``throughput`` is the job's throughput under the allocation (steps/s). ``equal_throughput`` is
    its throughput if its time is divided over all types in proportion to their GPUs.
    """
    types = list(gpus)
    steps_per_s = [job.get("steps_per_s", {}) for job in jobs.values()]
    speeds = np.array([[of_job.get(name, 1.0) for name in types] for of_job in steps_per_s])
    counts = np.array(list(gpus.values()), dtype=float)
    ones = np.ones(len(jobs))
    job_kinds = normalised(speeds, ones, ones, counts, "job {}".format)
    job_weights = [float(job.get("weight", 1)) for job in jobs.values()]
    entity_of_job = [job["entity"] for job in jobs.values()]
    entity_weights = {name: float(entity.get("weight", 1)) for name, entity in entities.items()}
    inner_policies = {name: entity["inner"] for name, entity in entities.items()}
    hierarchy = Hierarchy(entity_weights, inner_policies)
    shares = hierarchical_shares(job_kinds, job_weights, entity_of_job, hierarchy)
    return pd.DataFrame(
        {
            "job": list(jobs),
            "entity": entity_of_job,
            **dict(zip(types, shares.T, strict=True)),
            "share": shares.sum(axis=1),
            "throughput": (speeds * shares).sum(axis=1),
            "equal_throughput": speeds @ counts / counts.sum(),
        }
    )


def stages(
    jobs: SettingsByName, entities: SettingsByName, gpus: Mapping[str, int], leaving: Sequence[str]
) -> pd.DataFrame:
    """`entity_shares` of all jobs, and again after each job of ``leaving`` has ended."""
    frames = []
    for number in range(len(leaving) + 1):
        ended = set(leaving[:number])
        present = {name: job for name, job in jobs.items() if name not in ended}
        table = entity_shares(present, entities, gpus).set_index("job").reindex(list(jobs))
        table["entity"] = [job["entity"] for job in jobs.values()]
        stage = f"{leaving[number - 1]} ends" if number else "all jobs"
        table["present"] = [name not in ended for name in jobs]
        frames.append(table.fillna(0.0).reset_index().assign(stage=stage))
    return pd.concat(frames, ignore_index=True)


def instances(
    inputs: Mapping[str, Any], speeds: ThroughputTable
) -> dict[tuple[str, str], tuple[pd.DataFrame, ThroughputTable]]:
    """Trace and throughputs of Fig 11 by inner policy and instance.

    One-GPU jobs join one by one and outlast the end. The instance ``jobs`` has the models of the
    inputs, ``drawn`` has random speeds.
    """
    clock = inputs["time"]
    number = np.arange(len(inputs["models"]))
    jobs_per_entity = len(number) // len(inputs["entities"])
    jobs = pd.DataFrame(
        {
            "job_id": number,
            "submit_time": number * float(clock["every"]) * clock["step_s"],
            # they outlast the end even on a type twice as fast
            "duration": 4.0 * clock["steps"] * clock["step_s"],
            "num_gpus": 1,
            "entity": (number // jobs_per_entity).astype(str),
        }
    )
    sampled = random_speeds(inputs["gpus"], len(number))
    tables = {
        "jobs": (inputs["models"], speeds),
        "drawn": (list(sampled), ThroughputTable.of(sampled, speeds.reference)),
    }
    return {
        (inner, name): (
            jobs.assign(model=models, priority_weight=number % settings["weights"] + 1.0),
            table,
        )
        for inner, settings in inputs["inner"].items()
        for name, (models, table) in tables.items()
    }


def job_rates(
    result: Result,
    trace: pd.DataFrame,
    perf: ThroughputTable,
    gpus: Mapping[str, int],
    *,
    step_s: float,
    every: int,
    steps: int,
) -> pd.DataFrame:
    """Rate of each job that has arrived, at every ``every``-th timestep.

    Columns: timestep, job_id, entity, rate (in units of the job's speed on the reference type), and
    reference_over_equal. The last is the job's speed on the reference type, divided by its speed if
    its time is split over all types in proportion to their GPUs (section 4.3).
    """
    types = list(gpus)
    counts = np.array([gpus[gpu_type] for gpu_type in types], dtype=float)
    speeds = np.array([perf.speeds(model, 1, types) for model in trace["model"]])
    reference = [perf.steps_per_s(model, 1, perf.reference) for model in trace["model"]]
    scale = np.array(reference) / (speeds @ counts / counts.sum())
    spans = result.intervals
    rows: list[tuple[int, int, str, float, float]] = []
    for start in range(0, steps, every):
        # the middle of a timestep lies between two changes
        now = (start + 0.5) * step_s
        running = spans[(spans["start"] <= now) & (now < spans["end"])]
        rates = running.groupby("job_id")["rate"].sum()
        arrived = trace[trace["submit_time"] <= now]
        for job, entity in zip(arrived["job_id"], arrived["entity"], strict=True):
            rows.append((start + 1, job, entity, float(rates.get(job, 0.0)), scale[job]))
    columns = ["timestep", "job_id", "entity", "rate", "reference_over_equal"]
    return pd.DataFrame(rows, columns=columns)


def points(
    totals: Mapping[str, pd.DataFrame],
    timelines: pd.DataFrame,
    series_of: Mapping[str, str],
    compare: bool,
) -> pd.DataFrame:
    """Points of the total throughput and of single jobs' throughputs.

    An instance is one set of jobs with their speeds. ``totals`` are the published curves of total
    throughput by inner policy. ``timelines`` have the throughput by inner policy, instance, series,
    timestep and job_id. ``series_of`` maps a published series to its name in ``timelines``. Total
    throughput is compared for the first instance only. Our values are None unless ``compare``.
    """
    first_instance = timelines["instance"].iloc[0]
    frames = []
    for (inner, instance), rows in timelines.groupby(["inner", "instance"], sort=False):
        published = curves.published(f"hierarchical_{inner}_{instance}")
        published[["series", "job"]] = published["series"].str.extract(r"(.*), job (\d+)")
        names = f"{inner}, {instance}, " + published["series"]
        quantity = "throughput of job " + published["job"]
        by_job = rows.set_index(["series", "timestep", "job_id"])["throughput"]
        keys = [published["series"].map(series_of), published["x"], published["job"].astype(int)]
        values = by_job.reindex(pd.MultiIndex.from_arrays(keys)).to_numpy()
        frames.append(published.assign(series=names, quantity=quantity, ours=values))
        if instance == first_instance:
            published = mark_uncounted(totals[str(inner)], ["series"])
            keys = [published["series"].map(series_of), published["x"]]
            total = by_job.groupby(["series", "timestep"]).sum()
            values = total.reindex(pd.MultiIndex.from_arrays(keys)).to_numpy()
            names = f"{inner}, " + published["series"]
            frames.append(published.assign(series=names, quantity="total throughput", ours=values))
    table = pd.concat(frames).rename(columns={"mean": "published"}).assign(certainty="artifact")
    table = table[["series", "x", "quantity", "published", "ours", "certainty", "uncounted"]]
    return table if compare else table.assign(ours=None)


def random_speeds(gpu_types: Iterable[str], count: int) -> dict[str, dict[str, float]]:
    """Random steps per second of each job on each GPU type, ascending from the first type."""
    stream = random.Random(0)
    types = list(gpu_types)
    return {
        f"job {number}": dict(zip(types, sorted(stream.random() for _ in types), strict=True))
        for number in range(count)
    }


def end_parts(last_step: Sequence[float], jobs_per_entity: int, timestep: int) -> pd.DataFrame:
    """Upper edges of the published stacked areas at the last timestep, as parts of the total.

    Each area is the throughput of a job. ``last_step`` has the throughputs of two jobs per entity,
    one for each of its two weights. The jobs of an entity have these weights in turn.
    """
    pairs = np.reshape(last_step, (-1, 2))
    tops = np.cumsum(np.tile(pairs, jobs_per_entity // 2).ravel())
    return pd.DataFrame({"timestep": timestep, "part": tops / tops[-1]})
