"""The round mechanism: realises `Shares` (a fraction of time per job and GPU type) by whole rounds.

Gavel section 5: at every round boundary each (job, GPU type) pair has priority X / rounds received,
and pairs are taken greedily from the highest priority down, a job at most once per round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from repro.cluster.spec import Cluster
from repro.errors import PolicyError, TraceError
from repro.sim.decision import Run, RunSet, Shares
from repro.sim.jobs import JobTable

#: Relative overshoot of shares put down to rounding in the policy's solver.
TOLERANCE = 1e-6


def priorities(
    fractions: npt.NDArray[np.float64], rounds: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return X / rounds received; infinite where a positive share has received nothing.

    Parameters
    ----------
    fractions : ndarray, shape (jobs, GPU types)
        Allocation matrix X.
    rounds : ndarray, shape (jobs, GPU types)
        Rounds received so far.

    Examples
    --------
    >>> priorities(np.array([[0.6, 0.2, 0.0]]), np.array([[3.0, 0.0, 0.0]])).round(2)
    array([[0.2, inf, 0. ]])
    """
    safe = np.where(rounds > 0, rounds, 1.0)
    return np.where(rounds > 0, fractions / safe, np.where(fractions > 0, np.inf, 0.0))


def choose(
    fractions: npt.NDArray[np.float64],
    rounds: npt.NDArray[np.float64],
    widths: Sequence[int],
    capacity: Sequence[int],
) -> list[tuple[int, int]]:
    """Return who runs where in the next round: greedily, from the highest priority down.

    Parameters
    ----------
    fractions, rounds : ndarray, shape (jobs, GPU types)
        X and rounds received, as for `priorities`.
    widths : sequence of int
        Gang sizes (GPUs).
    capacity : sequence of int
        GPUs of each type.

    Returns
    -------
    list of (int, int)
        (job, GPU type), each job at most once. Ties: larger X, then order of types, then of jobs.

    Examples
    --------
    >>> x = np.array([[0.6, 0.4, 0.0], [0.2, 0.6, 0.2], [0.2, 0.0, 0.8]])
    >>> choose(x, np.array([[3.0, 1, 0], [1, 3, 0], [0, 0, 4]]), [1, 1, 1], [1, 1, 1])
    [(2, 0), (1, 2), (0, 1)]
    """
    rank = priorities(fractions, rounds)
    free = list(capacity)
    waiting = set(range(len(widths)))
    chosen: list[tuple[int, int]] = []
    rows, columns = np.nonzero(rank > 0)
    for i in np.lexsort((rows, columns, -fractions[rows, columns], -rank[rows, columns])):
        job, kind = int(rows[i]), int(columns[i])
        if job in waiting and widths[job] <= free[kind]:
            waiting.discard(job)
            free[kind] -= widths[job]
            chosen.append((job, kind))
    return chosen


def realised(
    fractions: npt.NDArray[np.float64],
    rounds: npt.NDArray[np.float64],
    widths: Sequence[int],
    capacity: Sequence[int],
    more: int = 1,
) -> npt.NDArray[np.float64]:
    """Return the rounds received after ``more`` further rounds of the same X.

    Parameters
    ----------
    fractions, rounds, widths, capacity
        As for `choose`.
    more : int
        Number of rounds to play.

    Examples
    --------
    >>> x = np.array([[0.5, 0.5], [0.5, 0.5]])
    >>> realised(x, np.zeros((2, 2)), [1, 1], [1, 1], more=4).tolist()
    [[2.0, 2.0], [2.0, 2.0]]
    """
    received = rounds.astype(float)
    for _ in range(more):
        for job, kind in choose(fractions, received, widths, capacity):
            received[job, kind] += 1
    return received


def gpus_by_type(cluster: Cluster) -> dict[str | None, int]:
    """Return GPUs per type; a cluster without types has the one key None."""
    kinds: list[str | None] = list(cluster.gpu_types)
    counts = cluster.gpu_types.values()
    return dict(zip(kinds, counts, strict=True)) or {None: cluster.num_gpus}


class RoundMechanism:
    """Rounds received, the current X and the current round of one run.

    Parameters
    ----------
    table : JobTable
        Job state, read only.
    cluster : Cluster
        GPUs per type.
    policy : str
        Name for messages.
    round_s : float
        Round length (s); six minutes in Gavel.
    fluid : bool
        Ideal execution: every job progresses at its share, no rounds.
    """

    def __init__(
        self,
        table: JobTable,
        cluster: Cluster,
        policy: str,
        round_s: float = 360.0,
        fluid: bool = False,
    ) -> None:
        self.table, self.policy, self.round_s, self.fluid = table, policy, round_s, fluid
        self.capacity = gpus_by_type(cluster)
        self._shares: Shares | None = None
        self._received: dict[tuple[int, str | None], float] = {}
        self._current = RunSet(())

    @property
    def has_shares(self) -> bool:
        """Whether an allocation has been adopted."""
        return self._shares is not None

    def adopt(self, shares: Shares) -> None:
        """Take over a new allocation matrix after checking it; rounding errors are trimmed."""
        x, kinds = shares.fractions, shares.gpu_types
        if x.shape != (len(shares.jobs), len(kinds)) or not set(kinds) <= set(self.capacity):
            raise PolicyError(
                f"policy {self.policy!r}: shares of shape {x.shape} for {len(shares.jobs)} jobs "
                f"and the GPU types {kinds}; the cluster has {tuple(self.capacity)}"
            )
        widths = np.array([self.table.gpus[job] for job in shares.jobs], dtype=float)
        limits = np.array([float(self.capacity[kind]) for kind in kinds])
        for job in shares.jobs:
            if self.table.gpus[job] > max(limits):
                raise TraceError(
                    f"job {self.table.ids[job]!r} asks for {self.table.gpus[job]} GPUs of one type "
                    f"and can never run: the cluster has {self.capacity}; use a larger cluster or "
                    f"drop the job"
                )
        used = widths @ x
        if len(x) and (
            x.min() < -TOLERANCE
            or x.sum(axis=1).max() > 1 + TOLERANCE
            or (used > limits * (1 + TOLERANCE)).any()
        ):
            raise PolicyError(
                f"policy {self.policy!r}: shares must be >= 0, sum to at most 1 per job and fit "
                f"the GPUs of each type"
            )
        fractions = np.clip(x, 0.0, None) * np.minimum(1.0, limits / np.maximum(used, 1e-300))
        self._shares = Shares(shares.jobs, kinds, fractions)

    def finish(self, job: int) -> None:
        """Forget a finished job."""
        for key in [key for key in self._received if key[0] == job]:
            del self._received[key]
        kept = [r for r in self._current.runs if isinstance(r, Run) and job not in r.jobs]
        self._current = RunSet(kept, "exact")

    def boundary(self, now: float) -> bool:
        """Tell whether a round begins now."""
        return self.fluid or abs(now / self.round_s - round(now / self.round_s)) < 1e-9

    def next_boundary(self, now: float) -> float:
        """Return the beginning of the next round (s)."""
        if self.fluid:
            return math.inf
        return (math.floor(now / self.round_s + 1e-9) + 1) * self.round_s

    @property
    def current(self) -> RunSet:
        """What runs in the present round."""
        return self._current

    def next_round(self) -> RunSet:
        """Choose the runs of the round that begins now."""
        shares = self._shares
        if shares is None:
            raise PolicyError(f"policy {self.policy!r} gave no shares before the first round")
        kinds = shares.gpu_types
        alive = [row for row, job in enumerate(shares.jobs) if job in self.table.active]
        jobs = [shares.jobs[row] for row in alive]
        widths = [self.table.gpus[job] for job in jobs]
        x = shares.fractions[alive]
        if self.fluid:
            return RunSet([r for r in map(partial(_spread, kinds), jobs, widths, x) if r], "exact")
        received = np.array([[self._received.get((job, k), 0.0) for k in kinds] for job in jobs])
        pairs = choose(x, received.reshape(x.shape), widths, [self.capacity[k] for k in kinds])
        runs = []
        for row, column in pairs:
            job, kind = jobs[row], kinds[column]
            runs.append(Run((job,), widths[row], kind))
            self._received[job, kind] = self._received.get((job, kind), 0.0) + 1.0
        self._current = RunSet(runs, "exact")
        return self._current


def _spread(
    kinds: Sequence[str | None], job: int, width: int, shares: npt.NDArray[np.float64]
) -> Run | None:
    """Return the run of a job that holds its shares of all types at once."""
    parts = tuple((k, width * s) for k, s in zip(kinds, shares.tolist(), strict=True) if s > 1e-12)
    return Run((job,), sum(gpus for _, gpus in parts), parts=parts) if parts else None
