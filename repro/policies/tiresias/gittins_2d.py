"""Continuous 2D-Gittins (Tiresias, section 3.2.1): largest Gittins index first.

The index of a job with attained service a = W_J t_J, for the total service S of past jobs, by the
three readings of the formula (`index`):

    remaining   G(a) = sup_D P(S - a <= D | S > a) / E[min(S - a, D) | S > a]    (Pseudocode 1)
    mean        G(a) = 1 / E[S | S > a]
    total       as ``remaining``, with S instead of S - a in the expectation     (public simulator)

Ties: the earlier submission, then the order in the trace.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from repro.base.errors import ParamError
from repro.base.typing import Array, Floats, Ints
from repro.engine.select.resort import Resort
from repro.model.policy import Key, Order, Ordering, register
from repro.model.settings import Above, InUnit
from repro.model.view import View
from repro.policies.tiresias._gittins import (
    GittinsIndex,
    Index,
    MeanServiceIndex,
    TotalServiceIndex,
)
from repro.trace.history import PUBLIC_SAMPLE, history

#: Class of the index of each reading. Its argument is the total services of past jobs
#: (GPU-seconds).
INDICES: dict[str, Callable[[Array], Index]] = {
    "remaining": GittinsIndex,
    "mean": MeanServiceIndex,
    "total": TotalServiceIndex,
}


@register("gittins-2d")
@dataclass(frozen=True)
class Gittins2D(Order):
    """Largest Gittins index of the attained GPU-time first, not discretised.

    Parameters
    ----------
    history : str or sequence of float
        Total GPU-time of past jobs (GPU-seconds), or the name of a public sample.
    index : {"remaining", "mean", "total"}
        "remaining": the literal formula of Pseudocode 1. "mean": 1 / E[S | S > a]. "total": the
        ratio of the public simulator. "mean" and "total" give the schedule of Figure 7,
        "remaining" does not.
    delta : float, optional
        One quantum D (GPU-seconds) instead of the supremum, for "remaining" only.
    quantum : float
        Seconds between decisions while jobs wait, as for ``las-2d``.

    Reference: Tiresias, NSDI 2019, section 3.2.1, Pseudocode 1, Figures 7 and 20.
    """

    history: str | Sequence[Annotated[float, InUnit("GPU-seconds")]] = PUBLIC_SAMPLE
    index: Literal["remaining", "mean", "total"] = "remaining"
    delta: Annotated[float, Above(0, "GPU-seconds")] | None = None
    quantum: Annotated[float, Above(0, "seconds")] = 60.0

    time_fields = ("history", "delta", "quantum")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.delta is not None and self.index != "remaining":
            raise ParamError(
                f"policy 'gittins-2d': delta is {self.delta} with index {self.index!r}; give it "
                f"only with 'remaining'"
            )

    def ranking(self) -> Index:
        """Index as a function of the attained service (GPU-seconds)."""
        samples = history(self.history)
        if self.delta is None:
            return INDICES[self.index](samples)
        return GittinsIndex(samples, self.delta)

    def quantum_s(self) -> float:
        """Seconds between decisions while jobs wait."""
        return self.quantum

    def ordering(self, view: View) -> Ordering:
        """Order of one simulation."""
        return _Ordering(self, view)


class _Ordering(Ordering):
    """Largest index of the attained service first. The index is built once per simulation."""

    def __init__(self, policy: Gittins2D, view: View) -> None:
        super().__init__(policy, view)
        self.index = policy.ranking()
        self.selection = Resort

    def key(self, job: int, now: float) -> Key:
        return -self.index(self.view.attained(job))

    def keys(self, jobs: Ints, now: float) -> Floats:
        """Keys of several jobs, (jobs,)."""
        return -self.index.of(self.view.attained_of(jobs))
