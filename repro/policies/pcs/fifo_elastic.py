"""Elastic first in, first out (PCS, section 5.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from repro.compiled import njit
from repro.core.elastic import Elastic, Jobs, Rule, State
from repro.core.policy import register
from repro.policies.pcs._in_order import REAL, WHOLE, add, drop, hand_out
from repro.sim.elastic import clock


@njit()
def _admit(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job in line, which has its place for good."""
    add(s, job, float(job), job)


@njit()
def _retire(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Take a job out."""
    drop(s, job)


@njit()
def _share(jobs: Jobs, how: int, s: State) -> None:
    """Give the first ones what they ask for."""
    hand_out(jobs, s, False, True)


@register("fifo-elastic")
@dataclass(frozen=True)
class FifoElastic(Elastic):
    """Earlier arrivals get all they ask for, the next one what is left (FIFO in PCS, 5.1)."""

    needs = frozenset({"duration"})
    foresees = True
    rule: ClassVar[Any] = Rule(clock(_admit, _retire, _share), _admit, _retire, _share, REAL, WHOLE)
