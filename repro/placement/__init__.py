"""Where jobs go: one placement rule per file, found by its registered name."""

from repro.core.discovery import fill
from repro.placement.base import Placement, Placer, make, placements, register

__all__ = ["Placement", "Placer", "discover", "make", "placements", "register"]


def discover() -> None:
    """Import every placement of this package and of installed ones."""
    fill(placements, __name__, "repro.placements")
