"""What Muri-S and Muri-L share: candidates, groups, and who holds what until the next decision."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from repro.core.decision import RunSet
from repro.core.policy import Policy
from repro.core.view import View
from repro.errors import ParamError
from repro.perf.interleaving import Interleaving
from repro.perf.stages import Ordering
from repro.policies.muri._paper_rules import KindSession
from repro.policies.muri._profiles import RESOURCES
from repro.policies.muri._simulator_rules import ListSession

#: Measured period over T of groups of 2, 3 and 4 jobs; grouping without matching was given another
#: value for 4 (Muri's simulator: factors on the CSV's times, over the 1.015 of a job alone).
MEASURED = (1.33 / 1.015, 1.5 / 1.015, 1.37 / 1.015)
MEASURED_BLOCKS = (1.33 / 1.015, 1.5 / 1.015, 1.3 / 1.015)


@dataclass(frozen=True)
class Muri(Policy):
    """Base of Muri-S and Muri-L: groups of jobs that take turns on the cluster's resources.

    Parameters
    ----------
    max_group : int
        Most jobs in a group, 2 to 4.
    ordering : {"best", "worst"}
        Order of the members' stages: the shortest or the longest period.
    blossom : bool
        Match jobs by efficiency; False: group neighbours in the order of priority.
    autopack : bool
        A group slower than its members one after the other is split, and all are admitted anew.
    noise : float
        The scheduler sees every stage time times a factor from [1 - noise, 1 + noise], drawn once
        per job and stage; 0 to 1.
    noise_seed : int
        Seed of those factors.
    interval : float, optional
        Seconds between decisions (360 on the paper's testbed); None: at every event.
    collapse : bool
        Match kinds of jobs where stage times repeat; False: always job by job (same weight, slow).
    measured_factors : bool, optional
        Periods of groups carry the simulator's measured factors. None: as the rules say.
    halving_rounds : bool, optional
        As many rounds of matching as halvings of ``max_group``; False: ``max_group`` rounds.
    best_first : bool, optional
        While GPUs lack, the pairs that waste least merge first; False: those first in the list.
        Only with ``blossom``.
    wide_first : bool, optional
        Equal priorities go to the wider job, to new ones last; False: to the earlier job.
    tie_window_s : float, optional
        A completion this near an arrival is one event with it.
    """

    max_group: int = 4
    ordering: Ordering = "best"
    blossom: bool = True
    autopack: bool = False
    noise: float = 0.0
    noise_seed: int = 0
    interval: float | None = None
    collapse: bool = field(default=True, repr=False)
    measured_factors: bool | None = None
    halving_rounds: bool | None = None
    best_first: bool | None = None
    wide_first: bool | None = None
    tie_window_s: float | None = None

    needs: ClassVar[frozenset[str]] = frozenset(
        {"stage_storage", "stage_cpu", "stage_gpu", "stage_network", "iteration_time"}
    )
    time_fields: ClassVar[tuple[str, ...]] = ("interval", "tie_window_s")
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {
            "measured_factors": False,
            "halving_rounds": True,
            "best_first": True,
            "wide_first": False,
            "tie_window_s": 0.0,
        },
        "muri": {
            "measured_factors": True,
            "halving_rounds": False,
            "best_first": False,
            "wide_first": True,
            "tie_window_s": 1e-4,
        },
    }

    def __post_init__(self) -> None:
        """Refuse settings out of range."""
        if self.max_group not in range(2, RESOURCES + 1):
            raise ParamError(
                f"{self.name}: max_group is {self.max_group}; give 2 to {RESOURCES}, as many jobs "
                f"as there are resources to take turns on"
            )
        if self.ordering not in ("best", "worst"):
            raise ParamError(f"{self.name}: ordering is {self.ordering!r}; give best or worst")
        if not 0 <= self.noise <= 1:
            raise ParamError(f"{self.name}: noise is {self.noise}; give a number from 0 to 1")
        if self.noise_seed < 0:
            raise ParamError(f"{self.name}: noise_seed is {self.noise_seed}; give 0 or more")
        if self.interval is not None and not self.interval > 0:
            raise ParamError(
                f"{self.name}: interval is {self.interval}; give a positive number of seconds"
            )

    @property
    def tie_s(self) -> float:
        """Seconds within which a completion and the next arrival count as one event."""
        return self.tie_window_s or 0.0

    def performance(self) -> Interleaving:
        """Return the interleaving of groups, with or without the measured factors."""
        factors: tuple[float, ...] = ()
        if self.measured_factors:
            factors = MEASURED if self.blossom else MEASURED_BLOCKS
        return Interleaving(None, self.ordering, factors)

    def session(self, view: View) -> Callable[[View], RunSet]:
        """Return the decision function of one run."""
        if self.best_first and self.blossom:
            return KindSession(self, view)
        return ListSession(self, view)

    @abstractmethod
    def first_value(self, view: View, job: int) -> float:
        """Return the priority of a job that never ran, smaller first."""

    @abstractmethod
    def values(self, view: View, width: int, jobs: list[int], seconds: list[float]) -> list[float]:
        """Return the priorities of jobs of one width, smaller first.

        Parameters
        ----------
        view : View
            The run.
        width : int
            GPUs each of them asks for.
        jobs : list of int
            Row numbers.
        seconds : list of float
            How long each has held GPUs (s).
        """
