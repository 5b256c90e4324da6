"""The round mechanism: realises `Shares` (a fraction of time per job and GPU type) by whole rounds.

Gavel section 5: at every round boundary each (job, GPU type) pair has priority X / rounds received,
and pairs are taken greedily from the highest priority down, a job at most once per round.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from repro.cluster.spec import Cluster
from repro.errors import PolicyError
from repro.sim.decision import Run, RunSet, Shares
from repro.sim.jobs import JobTable


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


def gpus_by_type(cluster: Cluster) -> dict[str | None, int]:
    """Return GPUs per type; a cluster without types has the one key None."""
    typed: dict[str | None, int] = {**cluster.gpu_types}
    return typed or {None: cluster.num_gpus}


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
        """Take over a new allocation matrix after checking it."""
        x = shares.fractions
        if x.shape != (len(shares.jobs), len(shares.gpu_types)):
            raise PolicyError(
                f"policy {self.policy!r}: shares have shape {x.shape}, "
                f"want ({len(shares.jobs)}, {len(shares.gpu_types)})"
            )
        widths = np.array([self.table.gpus[job] for job in shares.jobs], dtype=float)
        limits = np.array([float(self.capacity.get(kind, 0)) for kind in self._kinds(shares)])
        if len(x) and (
            x.min() < -1e-6
            or x.sum(axis=1).max() > 1 + 1e-6
            or (widths @ x > limits * (1 + 1e-6) + 1e-6).any()
        ):
            raise PolicyError(
                f"policy {self.policy!r}: shares must be >= 0, sum to at most 1 per job and fit "
                f"the GPUs of each type"
            )
        self._shares = shares

    def _kinds(self, shares: Shares) -> list[str | None]:
        return [kind if kind in self.capacity else None for kind in shares.gpu_types]

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

    def current(self, now: float) -> RunSet:
        """Return what runs in the present round."""
        return self._current

    def next_round(self, now: float) -> RunSet:
        """Choose the runs of the round that begins now."""
        shares = self._shares
        if shares is None:
            raise PolicyError(f"policy {self.policy!r} gave no shares before the first round")
        kinds = self._kinds(shares)
        alive = [row for row, job in enumerate(shares.jobs) if job in self.table.active]
        if self.fluid:
            runs = [
                Run((shares.jobs[row],), self.table.gpus[shares.jobs[row]] * share, kind)
                for row in alive
                for kind, share in zip(kinds, shares.fractions[row], strict=True)
                if share > 1e-12
            ]
            return RunSet(runs, "exact")
        x = shares.fractions[alive]
        jobs = [shares.jobs[row] for row in alive]
        received = np.array([[self._received.get((job, k), 0.0) for k in kinds] for job in jobs])
        rank = priorities(x, received.reshape(x.shape))
        free = dict(self.capacity)
        taken: set[int] = set()
        runs = []
        order = sorted(
            (
                (-rank[i, k], -x[i, k], k, job)
                for i, job in enumerate(jobs)
                for k in range(len(kinds))
                if rank[i, k] > 0
            )
        )
        for _, _, k, job in order:
            kind, width = kinds[k], self.table.gpus[job]
            if job not in taken and width <= free[kind]:
                taken.add(job)
                free[kind] -= width
                runs.append(Run((job,), width, kind))
                self._received[job, kind] = self._received.get((job, kind), 0.0) + 1.0
        self._current = RunSet(runs, "exact")
        return self._current
