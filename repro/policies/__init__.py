"""Scheduling policies, a folder for each paper."""

from repro.core.discovery import fill
from repro.core.policy import policies


def discover() -> None:
    """Import every policy of this package and of installed ones."""
    fill(policies, __name__, "repro.policies")
