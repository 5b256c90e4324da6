"""What an hour on a GPU of each type costs (Gavel, Figure 1 b and section 4.2)."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from repro.base.errors import ParamError
from repro.base.typing import Floats
from repro.files.tables import ModelTable

_PRICES = ModelTable("gavel_prices.csv", ("market", "gpu_type", "usd_per_hour", "source"))


def usd_per_hour(gpu_types: Sequence[str | None], market: str = "preemptible") -> Floats:
    """Return the price of a GPU of each type (USD per hour); 1 in a cluster without types (None).

    ``market`` is ``preemptible`` or ``on-demand``, a column of ``params/gavel_prices.csv``.
    """
    table = _PRICES.frame
    chosen = table[table["market"] == market]
    if chosen.empty:
        known = ", ".join(sorted(set(table["market"])))
        raise ParamError(f"no prices of market {market!r}; {_PRICES.file} has {known}")
    usd = pd.to_numeric(chosen["usd_per_hour"], errors="coerce")
    price = dict(zip(chosen["gpu_type"], usd, strict=True))
    for gpu_type in gpu_types:
        if gpu_type is not None and gpu_type not in price:
            raise ParamError(
                f"no {market} price of GPU type {gpu_type!r}; params/{_PRICES.file} has "
                f"{', '.join(sorted(price))}: add a row, or name another cluster"
            )
        if gpu_type is not None and not price[gpu_type] > 0:
            raise ParamError(
                f"{_PRICES.path}: usd_per_hour of {gpu_type} ({market}) must be a number above 0"
            )
    return np.array([1.0 if gpu_type is None else price[gpu_type] for gpu_type in gpu_types])
