"""Micro-simulation of interleaved jobs: every stage of every iteration, resource by resource."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any, Literal, get_args

import pandas as pd
import simpy

from repro.base.errors import ParamError, refuse_unknown

#: Resources in the order in which an iteration passes through them.
RESOURCES = ("storage", "CPU", "GPU", "network")
Sharing = Literal["barrier", "queue", "alone"]


class _Barrier:
    """A reusable barrier: no party passes until all parties have arrived."""

    def __init__(self, env: simpy.Environment, parties: int) -> None:
        self._env = env
        self._parties = parties
        self._arrived = 0
        self._gate = env.event()

    def wait(self) -> simpy.Event:
        """Event of the last party's arrival."""
        gate = self._gate
        self._arrived += 1
        if self._arrived == self._parties:
            self._arrived = 0
            self._gate = self._env.event()
            gate.succeed()
        return gate


def simulate_group(
    stages: Mapping[str, Sequence[float]],
    offsets: Mapping[str, int] | None = None,
    *,
    resources: Sequence[str] = RESOURCES,
    iterations: int = 3,
    sharing: Sharing = "barrier",
) -> pd.DataFrame:
    """Run the stages of jobs that share one set of resources (Muri, section 4.1, Figure 1).

    ``stages`` are the times of a job on each resource (s). ``offsets`` are the stages by which a
    job is ahead; by default every job is one stage behind the job before it.

    Sharing ``barrier`` is the paper's: in a step every job does one stage and waits for all others.
    Under ``queue`` a job goes on as soon as its next resource is free. Under ``alone`` jobs take
    turns for whole iterations.

    One row per stage, in order of start: group, job, iteration (from 1), resource, ready (arrival
    at the resource), start, end (s).
    """
    if offsets is None:
        offsets = {job: -position for position, job in enumerate(stages)}
    return simulate_groups(
        {"": offsets}, stages, resources=resources, iterations=iterations, sharing=sharing
    )


def simulate_groups(
    groups: Mapping[str, Mapping[str, int]],
    stages: Mapping[str, Sequence[float]],
    *,
    resources: Sequence[str] = RESOURCES,
    iterations: int = 3,
    sharing: Sharing = "barrier",
) -> pd.DataFrame:
    """Run several groups, each on its own resources; a job may have workers in several groups.

    ``groups`` are the offsets of the members of each group. The workers of one job finish every
    iteration together, as in synchronous training (Muri, section 4.2, Figure 7).
    """
    _check(groups, stages, resources, iterations)
    refuse_unknown("sharing is", [sharing], get_args(Sharing))
    env = simpy.Environment()
    workers = [job for members in groups.values() for job in members]
    job_barriers = {job: _Barrier(env, workers.count(job)) for job in set(workers)}
    rows: list[tuple[Any, ...]] = []
    for name, members in groups.items():
        group = _Group(env, name, members, resources, sharing)
        for job in members:
            env.process(group.worker(job, stages[job], iterations, job_barriers[job], rows))
    env.run()
    if len(rows) < len(workers) * len(resources) * iterations:
        raise ParamError(
            f"groups {', '.join(groups)} wait for each other for ever: the jobs they share finish "
            f"their iterations in another order in each; change the offsets"
        )
    columns = ["group", "job", "iteration", "resource", "ready", "start", "end"]
    table = pd.DataFrame(rows, columns=columns)
    return table.sort_values(["start", "end", "group", "job"], kind="stable", ignore_index=True)


class _Group:
    """The resources, the barrier and the members of one group."""

    def __init__(
        self,
        env: simpy.Environment,
        name: str,
        members: Mapping[str, int],
        resources: Sequence[str],
        sharing: Sharing,
    ) -> None:
        self._env = env
        self._name = name
        self._sharing = sharing
        self._resources = {resource: simpy.Resource(env) for resource in resources}
        #: held by one job for a whole iteration, under ``alone``
        self._iteration_lock = simpy.Resource(env)
        self._barrier = _Barrier(env, len(members))
        self._delays = {job: -offset % len(resources) for job, offset in members.items()}

    def worker(
        self,
        job: str,
        stages: Sequence[float],
        iterations: int,
        job_barrier: _Barrier,
        rows: list[tuple[Any, ...]],
    ) -> Generator[simpy.Event, Any, None]:
        """Run all iterations of a job and record every stage."""
        has_barrier = self._sharing == "barrier"
        for _ in range(self._delays[job]):
            # without a barrier, steps of 0 s make jobs start in the order of their offsets
            yield self._barrier.wait() if has_barrier else self._env.timeout(0)
        for iteration in range(1, iterations + 1):
            lock = self._iteration_lock.request() if self._sharing == "alone" else None
            if lock is not None:
                yield lock
            for position, (name, resource) in enumerate(self._resources.items(), start=1):
                ready = self._env.now
                with resource.request() as turn:
                    yield turn
                    start = self._env.now
                    yield self._env.timeout(float(stages[position - 1]))
                rows.append((self._name, job, iteration, name, ready, start, self._env.now))
                if position == len(stages):
                    yield job_barrier.wait()
                if has_barrier:
                    yield self._barrier.wait()
            if lock is not None:
                self._iteration_lock.release(lock)
        for _ in range(max(self._delays.values()) - self._delays[job] if has_barrier else 0):
            yield self._barrier.wait()


def steady_period(rows: pd.DataFrame) -> pd.Series[float]:
    """Mean time (s) from the start of an iteration to the next, by job of one group.

    The first iteration is left out.
    """
    last = int(rows["iteration"].max())
    if last < 3:
        raise ParamError(f"{last} iterations; a steady period needs at least 3")
    first_stage = rows.groupby(["job", "iteration"])["ready"].min()
    return (first_stage.xs(last, level="iteration") - first_stage.xs(2, level="iteration")) / (
        last - 2
    )


def steady_window(rows: pd.DataFrame) -> tuple[float, float]:
    """Start and end (s) of one period in which every job is past its first iteration."""
    period = float(steady_period(rows).max())
    first_stage = rows.loc[rows["iteration"] == 2].groupby("job")["ready"].min()
    since = float(first_stage.max())
    return since, since + period


def busy_shares(rows: pd.DataFrame, resources: Sequence[str] = RESOURCES) -> pd.Series[float]:
    """Busy share of each resource in one steady period; the mean is the efficiency gamma."""
    since, until = steady_window(rows)
    period = until - since
    inside = rows["end"].clip(upper=until) - rows["start"].clip(lower=since)
    busy = inside.clip(lower=0).groupby(rows["resource"]).sum() / period
    return busy.reindex(list(resources), fill_value=0.0)


def _check(
    groups: Mapping[str, Mapping[str, int]],
    stages: Mapping[str, Sequence[float]],
    resources: Sequence[str],
    iterations: int,
) -> None:
    """Refuse groups without members, jobs without a valid time per resource, and no iterations."""
    if not groups or not all(groups.values()):
        raise ParamError("a group without members; give at least one job per group")
    if iterations < 1:
        raise ParamError(f"iterations is {iterations}; give 1 or more")
    for job in {job for members in groups.values() for job in members}:
        times = stages.get(job, ())
        if len(times) != len(resources) or not all(0 <= time < float("inf") for time in times):
            raise ParamError(
                f"job {job!r} has stages {tuple(times)}; give one time of 0 or more for each of "
                f"{', '.join(resources)}"
            )
