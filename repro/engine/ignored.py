"""Lines on the inputs that a simulation did not use: columns, rows, options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Entry of the options for a cluster whose GPU types play no role.
TYPES_ALIKE = "GPU types of the cluster"
#: Most names in a line.
_MAX_NAMES = 20
#: Unused column or option -> reason.
_REASONS = {
    "gpu_share": "every job holds whole GPUs",
    "gpu_type": "a job runs on GPUs of any type; repro simulate --types wished follows this column",
    "types": "no job wishes for a GPU type, the cluster has no types, or the policy names the "
    "types itself",
    TYPES_ALIKE: "all GPUs are equally fast",
}


def ignored_lines(ignored: Mapping[str, Any], runs: str = "this run") -> list[str]:
    """One line for each kind of unused input.

    Parameters
    ----------
    ignored : mapping
        Entry ``ignored`` of `Result.meta`, or a part of it.
    runs : str
        Words for the simulations, after "not used by".

    Examples
    --------
    >>> ignored_lines({"columns": ["user"], "rows": {"no GPU": 2}})
    ['not used by this run: trace columns user', 'left out: rows of the trace (no GPU: 2)']
    >>> ignored_lines({"columns": ["model"], "options": [TYPES_ALIKE]})[1]
    'not used: GPU types of the cluster (all GPUs are equally fast); --throughputs gives speeds ...'
    """
    starts = {
        "columns": f"not used by {runs}: trace columns",
        "file_columns": "not read by the format: columns of the file",
    }
    lines = [
        f"{start} {_listed(ignored[key])}" for key, start in starts.items() if ignored.get(key)
    ]
    if ignored.get("rows"):
        counts = (f"{reason}: {rows:,}" for reason, rows in ignored["rows"].items())
        lines.append(f"left out: rows of the trace ({', '.join(counts)})")
    if ignored.get("options"):
        line = f"not used: {_listed(ignored['options'])}"
        if TYPES_ALIKE in ignored["options"] and "model" in ignored.get("columns", ()):
            line += "; --throughputs gives speeds by model and GPU type"
        lines.append(line)
    return lines


def _listed(names: list[str]) -> str:
    """Names with commas, and the known reasons why they are not used."""
    reasons = [_REASONS[name] for name in names if name in _REASONS]
    text = f"{', '.join(names[:_MAX_NAMES])}{', …' if len(names) > _MAX_NAMES else ''}"
    return f"{text} ({'; '.join(reasons)})" if reasons else text
