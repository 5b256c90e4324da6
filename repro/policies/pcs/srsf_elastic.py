"""Elastic shortest remaining service first (PCS, section 5.1)."""

from dataclasses import dataclass
from typing import Any, ClassVar

from repro.compiled import njit
from repro.core.elastic import HOLDERS, Elastic, Jobs, Rule, State
from repro.core.policy import register
from repro.policies.pcs._in_order import KEY, REAL, WHOLE, add, drop, hand_out, sort_holders
from repro.sim.elastic import clock


@njit()
def _key(jobs: Jobs, s: State, job: int) -> float:
    """Return the remaining service (GPU-seconds) on the GPUs asked for."""
    return float(jobs.asked[job] * (s.left[job] * jobs.error[job]) / jobs.fastest[job])


@njit()
def _admit(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Put a job in line, behind others of equal keys; the key of a waiting job stands still."""
    add(s, job, _key(jobs, s, job), job)


@njit()
def _retire(jobs: Jobs, how: int, s: State, job: int) -> None:
    """Take a job out."""
    drop(s, job)


@njit()
def _share(jobs: Jobs, how: int, s: State) -> None:
    """Give those of least service left what they ask for; equal ones keep their order."""
    for job in s.holders[: s.tally[HOLDERS]]:
        s.real[KEY, job] = _key(jobs, s, job)
    sort_holders(s, False)
    hand_out(jobs, s, False, True)


@register("srsf-elastic")
@dataclass(frozen=True)
class SrsfElastic(Elastic):
    """Smallest GPUs asked for times remaining time on them (called Tiresias in PCS, 5.1)."""

    needs = frozenset({"duration"})
    rule: ClassVar[Any] = Rule(
        clock(_admit, _retire, _share), _admit, _retire, _share, REAL, WHOLE, by_arrival=False
    )
