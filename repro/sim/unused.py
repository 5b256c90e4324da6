"""What a run was given and did not use: trace columns, rows left out, options."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pandas as pd

from repro.sim.engine import Engine
from repro.sim.whole_decisions import DecidedDriver


def unused(
    engine: Engine, trace: pd.DataFrame, rounds: Iterable[str], *, placed: bool
) -> dict[str, Any]:
    """Return what a finished run did not use, so that nothing is ignored without a word.

    ``rounds`` are the settings of rounds that the caller gave; ``placed`` tells whether a placement
    was given. Keys: columns, file_columns (lists), rows ({reason: rows}), options (list).
    """
    driver = engine.driver
    mechanism = driver.rounds if isinstance(driver, DecidedDriver) else None
    idle = set(rounds)
    if mechanism is not None:
        idle &= mechanism.settings.unused(engine.policy.tells_types)
    by_type = mechanism is not None or engine.speeds.known
    found = {
        "columns": [str(name) for name in trace.columns if name not in engine.table.read],
        "file_columns": list(trace.attrs.get("unread", ())),
        "rows": dict(trace.attrs.get("dropped", {})),
        "options": [
            *(["seed"] if engine.settings.seed and not engine.draws else []),
            *(["placement"] if placed and not engine.holdings.places else []),
            *sorted(idle),
            *(["GPU types of the cluster"] if engine.cluster.gpu_types and not by_type else []),
        ],
    }
    return {name: what for name, what in found.items() if what}
