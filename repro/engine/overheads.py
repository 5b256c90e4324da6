"""Costs of preemptions by name: none, measured by Tiresias, measured on an H100, or seconds."""

import math
from functools import cache
from statistics import fmean

import pandas as pd

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError
from repro.model.performance import Overhead
from repro.perf.overhead import CheckpointOverhead
from repro.placement.tiresias_models import checkpoint_overhead

#: Parts of a pause in the measured table: copy to the host, write, flush, exit.
_PAUSE = ("save_d2h_s", "save_write_s", "save_fsync_s", "exit_s")
ACCEPTED = "none, tiresias, h100, or seconds that a resumed job loses"


def named_overhead(name: str | float) -> Overhead | None:
    """Costs of preemptions.

    Parameters
    ----------
    name : str or float
        ``none``: no costs. ``tiresias``: seconds of a checkpoint by model (Tiresias, NSDI'19,
        Figure 4), and 50 s for a resumption, which follow from section 5.2.4. ``h100``: seconds of
        a checkpoint by model and the mean of a resumption, measured on one H100
        (``traces/measured/pause.csv``). A number: seconds that a resumed job holds its GPUs before
        it progresses.

    Returns
    -------
    Overhead or None
        None for ``none``.

    Raises
    ------
    ParamError
        If the name is unknown, or the number is negative or infinite.

    Examples
    --------
    >>> named_overhead(30).resume
    30.0
    """
    if name == "none":
        return None
    if name == "tiresias":
        return checkpoint_overhead()
    if name == "h100":
        return _h100()
    try:
        seconds = float(name)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ParamError(f"overhead {name!r:.60}: give {ACCEPTED}")
    return CheckpointOverhead({}, resume=seconds)


@cache
def _h100() -> Overhead:
    """Pause by model and mean time to resume, as measured on one H100."""
    path = paths.traces_dir() / "measured" / "pause.csv"
    if not path.is_file():
        raise DataMissingError(
            f"{path}: the measured table is missing; restore it from the checkout"
        )
    measured = pd.read_csv(path, comment="#")
    pause_s = measured[list(_PAUSE)].sum(axis=1).groupby(measured["job"]).median()
    resume_s = float(measured.groupby("job")["resume_total_s"].median().mean())
    pauses = {str(model): float(seconds) for model, seconds in pause_s.items()}
    return CheckpointOverhead(pauses, resume_s, fmean(pauses.values()))
