"""Model sizes and tensor skews for the rules that look at the model; case does not matter."""

from __future__ import annotations

from collections.abc import Mapping


def model_sizes(given: Mapping[str, float] | None) -> dict[str, float]:
    """Return the size of each model, MB: the given ones or those of Tiresias, Table 6."""
    return _table("size_mb", given)


def tensor_shares(given: Mapping[str, float] | None) -> dict[str, float]:
    """Return the share of each model's largest tensor: given or of Tiresias, Table 6."""
    return _table("largest_ratio", given)


def look_up(table: Mapping[str, float], model: str | None, default: float) -> float:
    """Return the entry of a model, or ``default`` for none, a missing or an unlisted one."""
    # A trace column with gaps holds NaN or NA where the model is missing.
    return table.get(model.lower(), default) if isinstance(model, str) else default


def _table(column: str, given: Mapping[str, float] | None) -> dict[str, float]:
    if given is None:
        from repro.perf.tiresias_models import tiresias_models

        given = {str(model): float(value) for model, value in tiresias_models()[column].items()}
    return {model.lower(): value for model, value in given.items()}
