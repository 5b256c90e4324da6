"""Options of one simulation, with names and defaults resolved."""

import math
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal

from repro.engine.failures import Failures
from repro.engine.rounds.settings import RoundSettings
from repro.model.performance import Overhead, Performance
from repro.model.rules import Rules
from repro.placement.base import Placement

#: Choice of GPU types for gangs whose policy names none: the fastest type, or the type that the job
#: asks for in the trace column ``gpu_type``.
TypeRule = Literal["fastest", "wished"]
#: Function that takes an `Engine` and returns a SimPy process, which runs next to the scheduler.
Process = Callable[[Any], Generator[Any, Any, Any]]


@dataclass(frozen=True)
class RunSettings:
    """The options of `repro.simulate` other than trace, cluster and policy."""

    placement: Placement
    rules: Rules = field(default_factory=Rules)
    rounds: RoundSettings = field(default_factory=RoundSettings)
    perf: Performance | None = None
    overhead: Overhead | None = None
    #: seconds between decisions; None: a decision at every event
    interval: float | None = None
    seed: int = 0
    #: ids of the jobs that the simulation waits for; None: all jobs
    until: Iterable[object] | None = None
    #: instant (s) at which the simulation ends even if jobs are unfinished
    stop_time: float = math.inf
    #: whether the intervals in which jobs hold GPUs are recorded (`Result.intervals`)
    keep_intervals: bool = True
    #: number of jobs whose completion is predicted at their arrival; None: all jobs
    predict: int | None = 0
    #: processes of the caller
    processes: Sequence[Process] = ()
    #: random failures of nodes
    failures: Failures | None = None
    #: number of jobs that arrive, the first ones; the others never do. None: all jobs
    arrivals: int | None = None
    #: choice of GPU types for gangs whose policy names none
    types: TypeRule = "fastest"

    @property
    def added_processes(self) -> Sequence[Process]:
        """Processes next to the scheduler: those of the caller, and that of the failures."""
        if self.failures is None:
            return self.processes
        return (*self.processes, partial(self.failures.process, seed=self.seed))

    @property
    def ends_early(self) -> bool:
        """Whether the simulation may end before all jobs have finished."""
        return self.until is not None or self.stop_time < math.inf
