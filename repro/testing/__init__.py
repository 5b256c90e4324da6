"""Checks that any policy must pass: `check_policy`."""

from repro.testing.battery import check_policy, scaled, small_trace, stress_traces

__all__ = ["check_policy", "scaled", "small_trace", "stress_traces"]
