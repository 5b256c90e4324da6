"""Jobs of one run by type: jobs that an allocation cannot tell apart, and their speeds."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from repro.core.view import View
from repro.errors import ParamError
from repro.perf.throughput import ThroughputTable

Array = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


class Asked:
    """A number per job that never changes, asked for once.

    Parameters
    ----------
    ask : callable
        Row number of a job to its number, which is not NaN.

    Examples
    --------
    >>> widths = Asked(lambda job: 2.0 * job)
    >>> widths([3, 1]).tolist()
    [6.0, 2.0]
    """

    def __init__(self, ask: Callable[[int], float]) -> None:
        self._ask = ask
        self._found = np.full(64, np.nan)

    def __call__(self, jobs: Sequence[int]) -> Array:
        """Return the numbers of several jobs."""
        which = np.fromiter(jobs, np.int64, len(jobs))
        highest = int(which.max(initial=-1))
        if highest >= len(self._found):
            self._found = np.concatenate([self._found, np.full(highest + 1, np.nan)])
        numbers: Array = self._found[which]
        unknown = np.isnan(numbers)
        if unknown.any():
            for job in which[unknown].tolist():
                self._found[job] = self._ask(job)
            numbers = self._found[which]
        return numbers


class JobTypes:
    """Groups jobs by a key that never changes, in an order that the order of jobs does not affect.

    Parameters
    ----------
    key : callable
        Row number of a job to a hashable key.

    Examples
    --------
    >>> types = JobTypes(lambda job: ("b", "a", "b")[job])
    >>> keys, counts, row = types.group([0, 1, 2])
    >>> keys, counts.tolist(), row.tolist()
    (['a', 'b'], [1, 2], [1, 0, 1])
    """

    def __init__(self, key: Callable[[int], Hashable]) -> None:
        self._number: dict[Hashable, int] = {}
        self._keys: list[Any] = []
        self._of_job = Asked(lambda job: self._find(key(job)))
        #: key numbers in order
        self._order: Ints = np.empty(0, dtype=np.int64)

    def group(self, jobs: Sequence[int], apart: bool = False) -> tuple[list[Any], Ints, Ints]:
        """Return the keys present in order, the jobs of each, and the key number of each job.

        Parameters
        ----------
        jobs : sequence of int
            Row numbers.
        apart : bool
            A key for every job, in the order of ``jobs``.
        """
        numbers = self.numbers(jobs)
        if apart:
            each = np.arange(len(jobs))
            return [self._keys[n] for n in numbers.tolist()], np.ones_like(each), each
        counts = np.bincount(numbers, minlength=len(self._keys))
        present = self._order[counts[self._order] > 0]
        place = np.zeros(len(self._keys), dtype=np.int64)
        place[present] = np.arange(len(present))
        return [self._keys[n] for n in present.tolist()], counts[present], place[numbers]

    def numbers(self, jobs: Sequence[int]) -> Ints:
        """Return the numbers of the keys of jobs, in the order in which keys were first seen."""
        return self._of_job(jobs).astype(np.int64)

    def _find(self, key: Hashable) -> int:
        """Return the number of a key, a new one if it was never seen."""
        number = self._number.setdefault(key, len(self._keys))
        if number == len(self._keys):
            self._keys.append(key)
            order = sorted(range(len(self._keys)), key=lambda n: repr(self._keys[n]))
            self._order = np.array(order, dtype=np.int64)
        return number


class JobSpeeds:
    """Speeds of the jobs of one run on the GPU types of the cluster.

    Parameters
    ----------
    view : View
        The run; the policy needs "throughput".
    policy : str
        Name for messages.
    throughputs : ThroughputTable, optional
        Speeds to use instead of those of the run.
    reference : str, optional
        Every GPU type counts as fast as this one, or as the job's fastest where the cluster does
        not have it; None: as fast as it is.
    """

    def __init__(
        self,
        view: View,
        policy: str,
        throughputs: ThroughputTable | None = None,
        reference: str | None = None,
    ) -> None:
        self.view, self.policy = view, policy
        self._throughputs, self._reference = throughputs, reference
        self._known: dict[Hashable, Array] = {}
        self._kinds = JobTypes(view.kind)
        #: speeds by number of the kind
        self._rows = np.empty((0, len(view.gpu_types)))

    def of(self, job: int) -> Array:
        """Return steps per second on each GPU type, 0 where the job cannot run."""
        kind: Any = self.view.kind(job)
        if kind not in self._known:
            self._known[kind] = self._find(job)
        return self._known[kind]

    def rows(self, jobs: Sequence[int]) -> Array:
        """Return the speeds of several jobs, shape (jobs, GPU types)."""
        numbers = self._kinds.numbers(jobs)
        while len(self._rows) <= numbers.max(initial=-1):
            job = jobs[int(np.argmax(numbers == len(self._rows)))]
            self._rows = np.concatenate([self._rows, self.of(job)[None, :]])
        found: Array = self._rows[numbers]
        return found

    def _find(self, job: int) -> Array:
        view = self.view
        if self._throughputs is None:
            speeds = view.speeds(job)
        else:
            model, width = view.model(job), view.gpus(job)
            speeds = np.array(self._throughputs.speeds(model, width, view.gpu_types))
            if not (speeds > 0).any():
                raise ParamError(
                    f"{self.policy}: {model!r} on {width} GPUs runs on none of "
                    f"{list(view.gpu_types)}"
                )
        if self._reference is None:
            return speeds
        types = list(view.gpu_types)
        known = speeds[types.index(self._reference)] if self._reference in types else 0.0
        return np.full(len(speeds), known if known > 0 else speeds.max())
