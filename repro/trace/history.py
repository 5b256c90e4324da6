"""Service-time histories: the total GPU-time of past jobs, which Gittins-style policies read."""

import warnings
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files import public
from repro.trace import synth
from repro.trace.synth.gpu_time import history_quantiles

#: sample of the Microsoft trace published with the Tiresias simulator (1,001 quantiles)
PUBLIC_SAMPLE = "tiresias-history-1000"


def history(source: str | Sequence[float]) -> Floats:
    """Return a sorted sample of total service times (GPU-seconds), public by name or as given."""
    if isinstance(source, str):
        return _public(source)
    values = np.sort(np.atleast_1d(np.asarray(source, dtype=float)))
    if values.size == 0 or not np.isfinite(values).all() or values[0] <= 0:
        raise ParamError("history needs at least one positive number of GPU-seconds")
    return values


def is_stand_in(name: str) -> bool:
    """Tell whether published quantiles take the place of a public history that is not available."""
    return not public.available(name) and synth.stand_in_for(name)[0] is not None


@lru_cache(maxsize=8)
def _public(name: str) -> Floats:
    if public.is_known(name) and (kind := public.entry(name).format) != "history":
        known = ", ".join(one for one, item in public.entries().items() if item.format == "history")
        raise ParamError(f"{name!r} is no history but {kind!r}; histories are {known}")
    if is_stand_in(name):
        warnings.warn(
            f"history {name!r} is not at hand (repro trace fetch {name}); using its published "
            f"quantiles, a synthetic stand-in",
            stacklevel=3,
        )
        return history(tuple(history_quantiles()))
    path = public.fetch(name)
    try:
        values = np.loadtxt(path, skiprows=1, delimiter=",", ndmin=1)
    except ValueError as error:
        raise ParamError(f"{path}: a history is one column of GPU-seconds ({error})") from None
    return history(tuple(values))
