"""Model sizes and tensor skews for the rules that look at the model; case does not matter."""

from __future__ import annotations

from collections.abc import Mapping

from repro.perf.tiresias_models import MODELS


def by_model(given: Mapping[str, float] | None, column: str) -> dict[str, float]:
    """Return what is given by model or, if None, a column of Tiresias, Table 6."""
    table = MODELS.column(column) if given is None else given
    return {model.lower(): value for model, value in table.items()}


def look_up(table: Mapping[str, float], model: str | None, default: float) -> float:
    """Return the entry of a model, or ``default`` for none, a missing or an unlisted one."""
    # A trace column with gaps holds NaN or NA where the model is missing.
    return table.get(model.lower(), default) if isinstance(model, str) else default
