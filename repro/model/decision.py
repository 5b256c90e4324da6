"""What a policy may propose: a `RunSet` (who runs, in order) or `Shares` (who gets how much)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from repro.base.typing import Floats, Ints

Fill = Literal["skip", "block", "exact"]


@dataclass(frozen=True, slots=True)
class Run:
    """One gang: a job, or a group of jobs that share the same GPUs.

    Parameters
    ----------
    jobs : tuple of int
        Row numbers of the members; more than one makes a group.
    gpus : float
        GPUs the gang holds; a fraction is allowed for policies that divide GPUs.
    gpu_type : str, optional
        GPU type asked for; None takes any, and stays on the type held while that has room.
    tasks : tuple of int
        Placement wish: the node of each task, parameter servers first, as many as there are GPUs.
        Empty leaves the place to the placement rule; a wish needs a rule that takes wishes.
    hosts : tuple of int
        Running jobs, named earlier in the decision, some of whose GPUs this gang uses too.
    shared : float
        How many of ``gpus`` those are; only the rest counts against the cluster.
    waits : bool
        The job holds these GPUs, fewer than it asks for, and waits for the others: the placed pods
        of a gang that nobody schedules as a whole.

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
    """Gangs in priority order; every unfinished job that is not named holds nothing.

    Parameters
    ----------
    runs : sequence of Run or int
        Highest priority first; a bare row number stands for that job with the GPUs it asked for.
    fill : {"skip", "block", "exact"}
        What happens to a gang that does not fit: it is skipped, it blocks all behind it, or the
        decision is refused with a PolicyError.
    wake : float
        Instant (s) at which the policy wants to decide again even if nothing happens.
    order : sequence of int
        The jobs in the order of the policy's list, where that is not the order of ``runs``; under
        some rules it decides which of nearly simultaneous completions names the instant.
    keep : bool
        Jobs that are named neither in ``runs`` nor in ``stop`` keep what they hold, so that a
        decision costs what it changes. A member of a group that changes names the rest anew.
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
    """Fraction of time each job spends on each GPU type until the next decision (Gavel's X).

    Parameters
    ----------
    jobs : sequence of int or tuple of int, or ndarray
        One per row of ``fractions``: a row number, or with space sharing the two row numbers that
        share the same GPUs; in an array of shape (rows, 2) the second is -1 for a job alone.
    gpu_types : tuple of str
        One per column, from `View.gpu_types`; None on a cluster without types.
    fractions : ndarray, shape (rows, GPU types)
        Share of time in [0, 1]; the rows of a job sum to at most 1.
    overcommitted : bool
        Whether a GPU type may be promised more time than its GPUs have, as by one policy of Gavel's
        simulator. A round never uses more GPUs than there are; in ideal execution, which has no
        rounds, the shares of such a type are scaled down.

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
        """The jobs of every row, shape (rows, 2); -1 where there is no second."""
        if isinstance(self.jobs, np.ndarray) and self.jobs.ndim == 2:
            return self.jobs
        rows = np.full((len(self.jobs), 2), -1, dtype=np.int64)
        try:
            rows[:, 0] = self.jobs
            return rows
        except (TypeError, ValueError):
            # some rows are pairs
            rows[:] = -1
        for row, entry in enumerate(self.jobs):
            if isinstance(entry, tuple):
                rows[row, : len(entry)] = entry
            else:
                rows[row, 0] = entry
        return rows


#: Everybody keeps what he holds.
NOTHING = RunSet((), keep=True)

Decision = RunSet | Shares
