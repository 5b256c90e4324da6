"""Histories: total GPU-time of past jobs (GPU-seconds), which Gittins-style policies read."""

import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files import public
from repro.trace import synth
from repro.trace.synth.gpu_time import history_quantiles

#: Sample of the Microsoft trace published with the Tiresias simulator: 1,001 quantiles.
PUBLIC_SAMPLE = "tiresias-history-1000"
_ACCEPTED = "history is one list of numbers of GPU-seconds, or the name of a public history"


def history(source: str | Sequence[float]) -> Floats:
    """GPU-time of past jobs, ascending (GPU-seconds), from a public name or from numbers."""
    if isinstance(source, str):
        return _public_history(source)
    try:
        values = np.sort(np.atleast_1d(np.asarray(source, dtype=float)))
    except (TypeError, ValueError):
        raise ParamError(_ACCEPTED) from None
    if values.ndim > 1:
        raise ParamError(_ACCEPTED)
    if values.size == 0 or not np.isfinite(values).all() or values[0] <= 0:
        raise ParamError("history needs at least one positive number of GPU-seconds")
    return values


def is_stand_in(name: str) -> bool:
    """Whether published quantiles replace a public history that is not available."""
    return not public.available(name) and synth.stand_in_for(name)[0] is not None


@lru_cache(maxsize=8)
def _public_history(name: str) -> Floats:
    """Public history ``name``, or its published quantiles where the file is not available."""
    if public.is_known(name) and (file_format := public.entry(name).format) != "history":
        items = public.entries().items()
        histories = ", ".join(other for other, item in items if item.format == "history")
        raise ParamError(
            f"{name!r} is a file of format {file_format}, not a history; histories are {histories}"
        )
    if is_stand_in(name):
        warnings.warn(
            f"history {name!r} is not available (repro trace fetch {name}); its published "
            f"quantiles are a stand-in for it",
            stacklevel=3,
        )
        return history(tuple(history_quantiles()))
    path = public.fetch(name)
    try:
        values = np.loadtxt(path, skiprows=1, delimiter=",", ndmin=1)
    except ValueError as error:
        raise ParamError(f"{path}: a history is one column of GPU-seconds ({error})") from None
    return history(tuple(values))
