"""What a notebook tells the batch that runs it: how many of its simulations are done."""

import contextlib
import os
from pathlib import Path

from repro.base.errors import ReproError
from repro.files.whole import write_whole

#: Address of the dask scheduler on whose workers a notebook may run its simulations.
ENV_SCHEDULER = "REPRO_SCHEDULER"
#: File in which a notebook tells how many of its simulations are done.
ENV_POINTS = "REPRO_POINTS"


def tell_points(done: int, total: int | None = None) -> None:
    """Write the number of simulations done, of all if that is known, for a batch that listens."""
    path = Path(os.environ.get(ENV_POINTS, ""))
    # On another machine the folder of the batch does not exist; progress must fail no figure.
    if path.name and path.parent.is_dir():
        with contextlib.suppress(ReproError):
            write_whole(path, (f"{done}" if total is None else f"{done}/{total}").encode())
