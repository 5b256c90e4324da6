"""Placement rules, one per file, by registered name."""

from repro.placement.base import Placement, Placer, make, placements, register

__all__ = ["Placement", "Placer", "make", "placements", "register"]
