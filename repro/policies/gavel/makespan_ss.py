"""Gavel's minimum makespan with space sharing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from repro.core.decision import Decision, Shares
from repro.core.policy import Policy, register
from repro.core.view import View
from repro.errors import ParamError
from repro.optimise.pairs.makespan import SHORT, makespan_pairs
from repro.optimise.pairs.rows import Rows
from repro.policies.gavel._pair_types import PairTypes


@register("gavel-makespan-ss")
@dataclass(frozen=True)
class GavelMakespanSS(Policy):
    """Minimise the time at which the last job finishes, where two jobs may share the same GPUs.

    Parameters
    ----------
    tolerance : float, optional
        0: the optimum. Otherwise a bisection of the makespan stops within this part of it, and
        the shares are amid all that reach its end. None: as the rules say.
    pairs : {"all", "working", "useful"}
        Pairs the programme knows: all, also those that run out of memory, as in the public
        simulator; those that run; those that beat time slicing.
    short : float
        Jobs that need less than this part of the longest job's time are pooled by type.

    References
    ----------
    Gavel, OSDI 2020, sections 4.1 and 4.2 (minimise makespan, space sharing).

    Examples
    --------
    >>> GavelMakespanSS().under("gavel").tolerance
    0.05
    """

    tolerance: float | None = None
    pairs: Literal["all", "working", "useful"] = "all"
    short: float = SHORT

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "duration"})
    pairs_up: ClassVar[bool] = True
    rule_values: ClassVar[Mapping[str, Mapping[str, Any]]] = {
        "paper": {"tolerance": 0.0},
        "gavel": {"tolerance": 0.05},
    }

    def __post_init__(self) -> None:
        if self.tolerance is not None and not 0 <= self.tolerance < 1:
            raise ParamError(f"tolerance is {self.tolerance!r}; give a number from 0 to below 1")

    def session(self, view: View) -> Callable[[View], Decision]:
        """Return the decision function of one run."""
        types = PairTypes(view, view.kind)
        capacity = np.asarray(view.gpu_counts, dtype=float)

        def decide(view: View) -> Shares:
            jobs = view.jobs
            if not jobs:
                return Shares((), view.gpu_types, np.zeros((0, len(capacity))))
            mix = types.mix(jobs)
            rows, _ = makespan_pairs(
                mix.speeds, mix.paired, mix.widths, capacity, mix.place,
                view.steps_left(jobs),
                tolerance=self.tolerance or 0.0, pairs=self.pairs, short=self.short,
            )  # fmt: skip
            numbers = np.append(np.array(jobs, dtype=np.int64), -1)
            return Rows(numbers[rows.members], rows.fractions).shares(view.gpu_types)

        return decide
