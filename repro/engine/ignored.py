"""Lines on the inputs that a simulation did not use: columns, rows, options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Entry of the options for a cluster whose GPU types play no role.
TYPES_ALIKE = "GPU types of the cluster"
#: Most names in a line.
_MAX_NAMES = 20
#: Column with the GPU type that a job asks for, and the option that follows it.
_WISH = "gpu_type"
_TYPES = "types"
#: Unused column or option -> reason.
_REASONS = {
    "gpu_share": "every job holds whole GPUs",
    _TYPES: "no job wishes for a GPU type, the cluster has no types, or the policy names the "
    "types itself",
    TYPES_ALIKE: "all GPUs are equally fast",
}


def ignored_lines(
    ignored: Mapping[str, Any], runs: str = "this run", *, has_types: bool = True
) -> list[str]:
    """One line for each kind of unused input.

    Parameters
    ----------
    ignored : mapping
        Entry ``ignored`` of `Result.meta`, or a part of it.
    runs : str
        Words for the simulations, after "not used by".
    has_types : bool
        Whether the cluster names GPU types.

    Examples
    --------
    >>> ignored_lines({"columns": ["user"], "rows": {"no GPU": 2}})
    ['not used by this run: trace columns user', 'left out: rows of the trace (no GPU: 2)']
    >>> ignored_lines({"columns": ["model"], "options": [TYPES_ALIKE]})[1]
    'not used: GPU types of the cluster (all GPUs are equally fast); --throughputs gives speeds ...'
    """
    options = ignored.get("options", ())
    lines = []
    if ignored.get("columns"):
        is_given = _TYPES in options
        reasons = _REASONS | {_WISH: _reason_of_wishes(is_given=is_given, has_types=has_types)}
        lines.append(f"not used by {runs}: trace columns {_listed(ignored['columns'], reasons)}")
    if ignored.get("file_columns"):
        # the reasons are about columns that a trace has
        names = _listed(ignored["file_columns"], {})
        lines.append(f"not read by the format: columns of the file {names}")
    if ignored.get("rows"):
        counts = (f"{reason}: {rows:,}" for reason, rows in ignored["rows"].items())
        lines.append(f"left out: rows of the trace ({', '.join(counts)})")
    if options:
        line = f"not used: {_listed(options, _REASONS)}"
        if TYPES_ALIKE in options and "model" in ignored.get("columns", ()):
            line += "; --throughputs gives speeds by model and GPU type"
        lines.append(line)
    return lines


def wishes_hint(*, has_types: bool) -> str:
    """Hint on ``--types wished`` for a cluster with or without GPU types."""
    if has_types:
        return (
            "--types wished runs jobs on the type in column gpu_type, unless the policy chooses it"
        )
    return "--types wished runs jobs on the type in column gpu_type on a cluster such as 1x8:v100"


def _reason_of_wishes(*, is_given: bool, has_types: bool) -> str:
    """Reason why the GPU types that jobs ask for play no role.

    There is no hint on ``--types wished`` if the caller gave it (``is_given``).
    """
    reason = "a job runs on GPUs of any type" if has_types else "the cluster names no GPU types"
    return reason if is_given else f"{reason}; repro simulate {wishes_hint(has_types=has_types)}"


def _listed(names: list[str], known_reasons: Mapping[str, str]) -> str:
    """Names with commas, and the known reasons why they are not used."""
    reasons = [known_reasons[name] for name in names if name in known_reasons]
    text = f"{', '.join(names[:_MAX_NAMES])}{', …' if len(names) > _MAX_NAMES else ''}"
    return f"{text} ({'; '.join(reasons)})" if reasons else text
