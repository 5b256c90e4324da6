"""``repro measure pairs``: job types alone and in pairs, by time slicing and under MPS."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from typing import Any

from repro.measure.crew import Crew
from repro.measure.job_types import JobType
from repro.measure.mps import control_daemon
from repro.measure.session import Session
from repro.measure.worker import WorkerError

#: Length of the window of a rate (s).
_WINDOW_S = 1.0
#: Seconds between the request and the common begin of a window.
_LEAD_S = 0.1


def measure(session: Session) -> int:
    """Append rows to ``isolated.csv`` and ``colocated.csv``; number of new rows."""
    added = _measure_mode(session, "timeslice")
    if session.budget.is_spent or session.machine.device != "cuda":
        return added
    with control_daemon() as reason:
        if reason:
            session.report(f"no pairs under MPS: {reason}")
            return added
        return added + _measure_mode(session, "mps")


def _measure_mode(session: Session, mode: str) -> int:
    """Measure job types alone, all pairs, and job types alone again; number of new rows."""
    alone = session.table("isolated.csv")
    together = session.table("colocated.csv")
    tasks = [
        *(("first", (job,)) for job in session.jobs),
        *(("", pair) for pair in _pairs(session.jobs)),
        *(("last", (job,)) for job in session.jobs),
    ]
    todo = [
        (when, jobs)
        for when, jobs in tasks
        if not (alone.has(mode, jobs[0].name, when) if when else together.has(mode, _label(jobs)))
    ]
    added = 0
    with Crew(session) as crew:
        for done, (when, jobs) in enumerate(todo):
            if not session.begins(f"{_label(jobs)} by {mode}", done, len(todo)):
                break
            rates = _rates_alone(alone.rows, mode)
            unmeasured = [job.name for job in jobs if job.name not in rates]
            # a pair without a row is tried again by the next run
            if unmeasured and not when:
                reason = f"{unmeasured[0]} has no rate alone"
                session.report(f"{_label(jobs)} by {mode}: left out, {reason}")
                continue
            try:
                if when:
                    alone.add(_alone(session, crew, mode, when, jobs[0]))
                else:
                    together.add(_together(session, crew, mode, jobs, rates))
                added += 1
            except WorkerError as error:
                session.report(f"{_label(jobs)} by {mode}: left out, {error}")
                crew.dismiss()
    return added


def _pairs(jobs: Sequence[JobType]) -> Iterator[tuple[JobType, ...]]:
    """All pairs of job types, also of each job type with itself."""
    return itertools.combinations_with_replacement(jobs, 2)


def _label(jobs: Sequence[JobType]) -> str:
    return "+".join(job.name for job in jobs)


def _rates_alone(rows: Sequence[dict[str, str]], mode: str) -> dict[str, float]:
    """Rate of each job type alone before the pairs (iterations/s)."""
    return {
        row["job"]: float(row["iters_per_s"])
        for row in rows
        if row["mode"] == mode and row["when"] == "first"
    }


def _alone(session: Session, crew: Crew, mode: str, when: str, job: JobType) -> dict[str, Any]:
    """Row of a job type alone."""
    configuration = session.configuration(job)
    (worker,) = crew.ready_workers([job])
    facts = worker.ask("facts")
    with session.samples() as samples:
        measured = worker.ask("rate", seconds=session.window_s(_WINDOW_S))
    return {
        "mode": mode,
        "job": job.name,
        "batch_size": configuration.batch_size,
        "input_size": configuration.input_size,
        "precision": configuration.precision,
        "optimizer": configuration.optimizer,
        "when": when,
        "iters_per_s": measured["rate"],
        "samples_per_s": measured["rate"] * configuration.batch_size,
        "n": measured["n"],
        "gpu_util_mean": samples.mean("gpu_util"),
        "power_w": samples.mean("power_w"),
        **facts,
    }


def _together(
    session: Session,
    crew: Crew,
    mode: str,
    jobs: Sequence[JobType],
    rates_alone: dict[str, float],
) -> dict[str, Any]:
    """Row of jobs that share the GPU, in one common window."""
    workers = crew.ready_workers(jobs)
    begin = time.monotonic() + _LEAD_S
    with session.samples() as samples:
        for worker in workers:
            worker.send("rate", seconds=session.window_s(_WINDOW_S), start_at=begin)
        measured = [worker.answer() for worker in workers]
    norms = [
        answer["rate"] / rates_alone[job.name] for job, answer in zip(jobs, measured, strict=True)
    ]
    row: dict[str, Any] = {
        "mode": mode,
        "k": len(jobs),
        "jobs": _label(jobs),
        "norm_sum": sum(norms),
        "gpu_util_mean": samples.mean("gpu_util"),
        "mem_used_mb": max(samples.values("mem_used_mb"), default=None),
        "power_w": samples.mean("power_w"),
    }
    for letter, job, answer, norm in zip("ab", jobs, measured, norms, strict=True):
        row |= {
            f"job_{letter}": job.name,
            f"iso_{letter}": rates_alone[job.name],
            f"rate_{letter}": answer["rate"],
            f"norm_{letter}": norm,
            f"n_{letter}": answer["n"],
        }
    return row
