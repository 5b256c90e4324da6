"""Traces: a validated table of jobs, its published formats, and where the public files come from."""

from __future__ import annotations

from repro.trace.load import describe, load, write
from repro.trace.schema import validate

__all__ = ["describe", "load", "validate", "write"]
