"""Traces: read from files (`load`), generated (`synth`), dressed with models (`dress`)."""

from typing import Any

__all__ = ["dress"]


def __getattr__(name: str) -> Any:
    # on first use, as the command line lists its commands without pandas
    if name != "dress":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from repro.trace.dressing import dress

    return dress
