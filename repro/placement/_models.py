"""Model sizes and tensor skews for the rules that look at the model."""

from __future__ import annotations


def table6_sizes() -> dict[str, float]:
    """Return the size of each model of Tiresias, Table 6, MB."""
    from repro.perf.models import tiresias_models

    return dict(tiresias_models()["size_mb"])


def table6_shares() -> dict[str, float]:
    """Return the share of the largest tensor of each model of Tiresias, Table 6."""
    from repro.perf.models import tiresias_models

    return dict(tiresias_models()["largest_ratio"])
