"""``repro measure stages``: time of each stage of an iteration, and groups of jobs by stages."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from repro.measure.crew import Crew
from repro.measure.job_types import MURI_TYPES, JobType
from repro.measure.parts import STAGES, stage_seconds
from repro.measure.session import Session
from repro.measure.worker import Worker, WorkerError

#: Longest time for the iterations of a row of stages.csv (s), and window of a group (s).
_STAGES_S = 3.0
_WINDOW_S = 3.0
#: Time until the window of a group begins (s), in which all its workers receive their requests.
_LEAD_S = 0.1
#: Factors of the batch size.
_FACTORS = (1.0, 0.25, 0.5)
#: Random groups of each size above two; all pairs are measured.
GROUPS_OF_A_SIZE = 28
_GROUP_SIZES = (3, 4)
ALONE = "alone"
_MODES = ("free", "lock")


def measure(session: Session) -> int:
    """Append rows to ``stages.csv`` and ``interleave.csv``; number of new measurements."""
    added = _measure_stages(session)
    return added if session.budget.is_spent else added + _measure_groups(session)


def _measure_stages(session: Session) -> int:
    """Measure the stages of each job type at three batch sizes; number of new rows."""
    table = session.table("stages.csv")
    runs = []
    for job in session.jobs:
        wanted = [max(1, int(job.batch_size * factor)) for factor in _FACTORS]
        sizes = dict.fromkeys(map(session.batch_size, wanted))
        runs += [(job, size) for size in sizes]
    todo = [(job, size) for job, size in runs if not table.has(job.name, size)]
    added = 0
    for done, (job, size) in enumerate(todo):
        if not session.begins(f"stages of {job.name}, batch size {size}", done, len(todo)):
            break
        try:
            table.add(_stages(session, job, size))
            added += 1
        except WorkerError as error:
            session.report(f"stages of {job.name}: left out, {error}")
    return added


def _stages(session: Session, job: JobType, batch_size: int) -> dict[str, Any]:
    """Row of a job type at a batch size."""
    configuration = session.configuration(job, batch_size=batch_size)
    with Worker(configuration) as worker:
        facts = worker.ask("facts")
        worker.ask("connect")
        with session.samples() as samples:
            parts = worker.ask("stages", seconds=session.window_s(_STAGES_S))
    stages = stage_seconds(parts)
    total_s = sum(stages.values())
    return {
        "job": job.name,
        "kind": job.kind,
        "batch_size": configuration.batch_size,
        "input_size": configuration.input_size,
        "precision": configuration.precision,
        "params_m": facts["params_m"],
        "iters": parts["n"],
        "total_s": total_s,
        "gpu_util_mean": samples.mean("gpu_util"),
        **{f"{stage}_s": seconds for stage, seconds in stages.items()},
        **{f"{stage}_share": seconds / total_s for stage, seconds in stages.items()},
        **{f"{part}_s": parts[part] for part in ("h2d", "forward", "backward", "update")},
        **{f"{part}_s": parts[part] for part in ("d2h", "h2d_params")},
    }


def _groups(session: Session) -> list[tuple[JobType, ...]]:
    """All pairs of Muri's job types of the session, and random groups of three and four."""
    jobs = [job for job in session.jobs if job.name in MURI_TYPES] or list(session.jobs)
    rng = np.random.default_rng([session.seed, 43])
    groups: list[tuple[JobType, ...]] = [*itertools.combinations(jobs, 2)]
    for size in _GROUP_SIZES:
        larger = list(itertools.combinations(jobs, size))
        count = min(GROUPS_OF_A_SIZE, len(larger))
        chosen = sorted(rng.permutation(len(larger))[:count].tolist())
        groups += [larger[number] for number in chosen]
    return groups


def _measure_groups(session: Session) -> int:
    """Measure each job type alone, then each group free and with locks.

    Number of new measurements.
    """
    table = session.table("interleave.csv")
    groups = _groups(session)
    members = dict.fromkeys(job for group in groups for job in group)
    tasks: list[tuple[str, str, tuple[JobType, ...]]] = [(ALONE, ALONE, (job,)) for job in members]
    for group in groups:
        tasks += [("+".join(job.name for job in group), mode, group) for mode in _MODES]
    todo = [task for task in tasks if not table.has(task[0], task[1], task[2][0].name)]
    added = 0
    with Crew(session) as crew:
        for done, (name, mode, group) in enumerate(todo):
            label = group[0].name if name == ALONE else name
            if not session.begins(f"group {label}, {mode}", done, len(todo)):
                break
            alone = {row["job"]: float(row["rate"]) for row in table.rows if row["group"] == ALONE}
            try:
                table.extend(_group(session, crew, name, mode, group, alone))
                added += 1
            except WorkerError as error:
                session.report(f"group {label}, {mode}: left out, {error}")
                crew.dismiss()
    return added


def _group(
    session: Session,
    crew: Crew,
    name: str,
    mode: str,
    group: Sequence[JobType],
    alone: dict[str, float],
) -> list[dict[str, Any]]:
    """Rows of the members of a group, in one common window."""
    workers = crew.ready_workers(group)
    for worker in workers:
        worker.send("connect")
    for worker in workers:
        worker.answer()
    begin = time.monotonic() + _LEAD_S
    window_s = session.window_s(_WINDOW_S)
    with session.samples() as samples:
        for worker in workers:
            worker.send("stage_rate", seconds=window_s, start_at=begin, locked=mode != "free")
        measured = [worker.answer() for worker in workers]
    rates = {group[0].name: measured[0]["rate"]} if name == ALONE else alone
    missing = [job.name for job in group if job.name not in rates]
    if missing:
        raise WorkerError(f"{missing[0]} was not measured alone")
    norms = [answer["rate"] / rates[job.name] for job, answer in zip(group, measured, strict=True)]
    return [
        {
            "group": name,
            "mode": mode,
            "k": len(group),
            "jobs": "+".join(member.name for member in group),
            "job": job.name,
            "batch_size": session.batch_size(job.batch_size),
            "gpu_passes": 1,
            "raw_images": 0,
            "iso_rate": rates[job.name],
            "rate": answer["rate"],
            "norm": norm,
            "n": answer["n"],
            "lock_wait_s": answer["wait"],
            "group_norm_sum": sum(norms),
            "gpu_util_mean": samples.mean("gpu_util"),
            **{f"{stage}_s": answer[stage] for stage in STAGES},
        }
        for job, answer, norm in zip(group, measured, norms, strict=True)
    ]
