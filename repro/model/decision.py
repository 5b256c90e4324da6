"""Decisions of a policy: `RunSet` (gangs in order of priority) or `Shares` (fractions of time)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from repro.base.errors import PolicyError
from repro.base.typing import Floats, Ints

Fill = Literal["skip", "block", "exact"]
#: Types of a row number of the trace.
ROW_NUMBER = (int, np.integer)
#: GPUs up to this number count as none: sums of fractions have rounding errors.
GPU_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Run:
    """A gang: a job, or a group of jobs on the same GPUs.

    Parameters
    ----------
    jobs : tuple of int
        Row numbers of the members. Several jobs make a group.
    gpus : float
        GPUs that the gang holds. Policies that divide GPUs may give fractions.
    gpu_type : str, optional
        Demanded GPU type. None: the engine chooses the type. A gang with ``hosts`` gets the type of
        its first host. Any other gang keeps the type that its first job holds, if this type has
        enough free GPUs. Otherwise it gets the fastest type with enough free GPUs. If no type has
        enough, or no speeds by type are known, it gets the type with the most free GPUs. With
        `RunSet.keep`, a running gang that is named again does not prefer the type that it holds.
    tasks : tuple of int
        Node of each task, parameter servers first. Every task, also a parameter server, holds one
        GPU. Only some placement rules accept nodes. Empty: the placement rule chooses the nodes.
    hosts : tuple of int
        Jobs whose GPUs the gang uses as well. The decision names them earlier, or with
        `RunSet.keep` they hold GPUs already. When a host has ended or stopped, the decision names
        the gang anew or stops it.
    shared : float
        Number of GPUs among ``gpus`` that belong to ``hosts``. They do not count against the
        cluster.
    waits : bool
        The job holds ``gpus``, fewer than its demand, and waits for the other GPUs. An example is a
        gang without gang scheduling, of which only some pods are placed.

    Examples
    --------
    >>> Run((0, 3), gpus=2).jobs
    (0, 3)
    >>> Run((5,), gpus=4, hosts=(0,), shared=2).charged
    2
    """

    jobs: tuple[int, ...]
    gpus: float
    gpu_type: str | None = None
    tasks: tuple[int, ...] = ()
    hosts: tuple[int, ...] = ()
    shared: float = 0
    waits: bool = False

    @property
    def charged(self) -> float:
        """GPUs that count against the cluster."""
        return self.gpus - self.shared


@dataclass(frozen=True, slots=True)
class RunSet:
    """Gangs in order of priority; an unfinished job without a gang holds no GPUs.

    Parameters
    ----------
    runs : sequence of Run or int
        Highest priority first. A row number is a gang of this job that holds its demand.
    fill : {"skip", "block", "exact"}
        Treatment of a gang that does not fit. ``skip``: it waits. ``block``: it waits, and so do
        all gangs after it. ``exact``: the decision is refused with a PolicyError. With ``keep`` it
        is refused under every ``fill``.
    wake : float
        Instant (s) of the next decision, if no event comes earlier.
    order : sequence of int
        Jobs in the order of the policy's own list. It must name all jobs that hold GPUs. It may
        name other jobs, which play no role. Empty: the order of ``runs``, or with ``keep`` the
        order of starts. Under rules ``muri``, jobs that complete at nearly the same time complete
        at one instant: the completion of the job among them that is first in this order.
    keep : bool
        All jobs that are neither in ``runs`` nor in ``stop`` keep their GPUs, so a decision names
        only changes. If a group changes, the decision names all its remaining members.
    stop : sequence of int
        With ``keep``: jobs that lose their GPUs.

    Examples
    --------
    >>> RunSet([2, 0]).fill
    'skip'
    """

    runs: Sequence[Run | int]
    fill: Fill = "skip"
    wake: float = math.inf
    order: Sequence[int] = ()
    keep: bool = False
    stop: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Shares:
    """Allocation X of Gavel: fraction of time of each job on each GPU type until the next decision.

    X is defined in Gavel, OSDI 2020, section 3.1.

    Parameters
    ----------
    jobs : sequence of int or tuple of int, or ndarray
        Job of each row of ``fractions``, or the two jobs that share GPUs in this row. In an array
        of shape (rows, 2) the second job is -1 for a job alone.
    gpu_types : tuple of str
        GPU type of each column, from `View.gpu_types`; None on a cluster without types.
    fractions : ndarray, shape (rows, GPU types)
        Share of time in [0, 1]. The rows of a job sum to at most 1.
    overcommitted : bool
        Whether the shares of a GPU type may exceed its GPUs, as in a policy of Gavel's simulator.
        A round uses the GPUs that exist. Ideal execution, which has no rounds, scales the shares of
        such a type down.

    Examples
    --------
    >>> Shares((0, (1, 2)), ("v100",), np.array([[0.5], [0.5]])).members.tolist()
    [[0, -1], [1, 2]]
    """

    jobs: Sequence[int | tuple[int, ...]] | Ints
    gpu_types: tuple[str | None, ...]
    fractions: Floats = field(repr=False)
    overcommitted: bool = False

    @property
    def members(self) -> Ints:
        """Jobs of each row, (rows, 2); -1 in place of a second job.

        Raises
        ------
        PolicyError
            If a row is not one job or two.
        """
        rows = np.full((len(self.jobs), 2), -1, dtype=np.int64)
        if isinstance(self.jobs, np.ndarray):
            if not len(self.jobs):
                # `np.array([])` is of floats
                return rows
            are_numbers = self.jobs.dtype.kind in "iu"
            if are_numbers and self.jobs.ndim == 1:
                rows[:, 0] = self.jobs
                return rows
            if are_numbers and self.jobs.shape[1:] == (2,):
                return self.jobs
            raise PolicyError(
                f"Shares.jobs has shape {self.jobs.shape} and type {self.jobs.dtype}; give row "
                "numbers of shape (rows,), or (rows, 2) with -1 in place of a second job"
            )
        if set(map(type, self.jobs)) == {int}:
            rows[:, 0] = self.jobs
            return rows
        for row, entry in enumerate(self.jobs):
            jobs = entry if isinstance(entry, tuple) else (entry,)
            if len(jobs) not in (1, 2) or not all(isinstance(job, ROW_NUMBER) for job in jobs):
                raise PolicyError(
                    f"Shares.jobs[{row}] is {entry!r}; give a row number, or a tuple of two"
                )
            rows[row, : len(jobs)] = jobs
        return rows


#: Every job keeps its GPUs.
NO_CHANGE = RunSet((), keep=True)

Decision = RunSet | Shares
