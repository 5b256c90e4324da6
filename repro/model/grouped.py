"""Base of policies whose jobs share GPUs: in groups, or as jobs on the GPUs of host jobs."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from repro.model.decision import RunSet
from repro.model.policy import Policy
from repro.model.view import View

#: Row numbers of the members of a group.
Group = tuple[int, ...]


@dataclass(frozen=True)
class Grouped(Policy):
    """A policy that lets jobs share GPUs; a subclass defines `session`.

    A group is a `Run` of several jobs on the same GPUs. A job with hosts is a `Run` that names its
    ``hosts``, whose GPUs it also uses. The performance model (`performance`) has the speed of each
    member. ``fresh`` and ``finished`` of the `View` are the jobs that arrived, and that finished,
    since the last decision. In ``session``, ``view`` is the `View` of the run.

    References
    ----------
    Muri, SIGCOMM 2022, Algorithm 1; AntMan, OSDI 2020.

    Examples
    --------
    >>> from repro import simulate
    >>> from repro.model.decision import Run
    >>> from repro.perf import Interleaving
    >>> from repro.testing import small_trace
    >>> def neighbours(view):
    ...     single = [job for job in view.jobs if view.gpus(job) == 1]
    ...     pairs = [tuple(single[i : i + 2]) for i in range(0, len(single), 2)]
    ...     return RunSet([Run(pair, 1) for pair in pairs])
    >>> @dataclass(frozen=True)
    ... class TwoByTwo(Grouped):
    ...     def session(self, view):
    ...         return neighbours
    >>> trace = small_trace().assign(num_gpus=1, stage_cpu=[2, 1] * 3, stage_gpu=[1, 2] * 3)
    >>> turns = Interleaving(("stage_cpu", "stage_gpu"))
    >>> simulate(trace, "1x4", TwoByTwo(), perf=turns).summary()["n_finished"]
    6
    """

    names_types: ClassVar[bool] = False

    @abstractmethod
    def session(self, view: View) -> Callable[[View], RunSet]:
        """Decision function of one run."""
