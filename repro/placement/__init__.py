"""Where jobs go: one placement rule per file, found by its registered name."""

from repro.placement.base import Placement, Placer, make, placements, register

__all__ = ["Placement", "Placer", "make", "placements", "register"]
