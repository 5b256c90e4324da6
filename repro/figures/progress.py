"""Progress of a notebook: the number of its simulations that are done, for the batch."""

import contextlib
import os
from pathlib import Path

from repro.base.errors import ReproError
from repro.files.whole import write_whole

#: Variable with the address of the dask scheduler whose workers run the simulations.
ENV_SCHEDULER = "REPRO_SCHEDULER"
#: Variable with the file into which a notebook writes its progress.
ENV_PROGRESS = "REPRO_PROGRESS"


def write_progress(done: int, total: int | None = None) -> None:
    """Write the number of simulations done, and the total if known, into the file of the batch."""
    path = Path(os.environ.get(ENV_PROGRESS, ""))
    # On another machine the folder of the batch does not exist. That must not fail the figure.
    if path.name and path.parent.is_dir():
        with contextlib.suppress(ReproError):
            write_whole(path, (f"{done}" if total is None else f"{done}/{total}").encode())
