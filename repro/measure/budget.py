"""A budget of minutes: no measurement begins after its end."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass
class Budget:
    """Minutes for a run.

    Parameters
    ----------
    minutes : float
        Minutes; infinite: no limit.
    clock : callable
        Seconds of a clock that never goes back.

    Examples
    --------
    >>> Budget(1, clock=lambda: 0.0).left_s
    60.0
    """

    minutes: float
    clock: Callable[[], float] = time.monotonic
    _begin_s: float = field(init=False)

    def __post_init__(self) -> None:
        self._begin_s = self.clock()

    @property
    def used_s(self) -> float:
        """Seconds since the start."""
        return self.clock() - self._begin_s

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative after the end."""
        return 60 * self.minutes - self.used_s

    @property
    def is_spent(self) -> bool:
        """Whether no measurement may begin."""
        return self.left_s <= 0
