"""Costs of preemptions by name: none, measured by Tiresias, a measured folder, or seconds."""

import math
import os
from statistics import fmean

from repro.base.errors import ParamError
from repro.files.checks import shown
from repro.model.performance import Overhead
from repro.perf.measured_folder import H100, OTHER_NAMES, measured_folder
from repro.perf.overhead import CheckpointOverhead
from repro.placement.tiresias_models import checkpoint_overhead

ACCEPTED = "none, tiresias, h100, or seconds that a resumed job loses, or a measured folder"


def named_overhead(name: str | float) -> Overhead | None:
    """Costs of preemptions.

    Parameters
    ----------
    name : str or float
        ``none``: no costs. ``tiresias``: seconds of a checkpoint by model (Tiresias, NSDI'19,
        Figure 4), and 50 s for a resumption. The 50 s follow from section 5.2.4. A folder that
        `repro measure` wrote: seconds of a checkpoint by model, from its ``pause.csv``. Every
        resumption costs the mean over the models in this file. ``h100``: the folder
        ``traces/measured``, measured on one H100. A number: seconds that a resumed job holds its
        GPUs before it progresses.

    Returns
    -------
    Overhead or None
        None for ``none`` and for 0.

    Raises
    ------
    ParamError
        If the name is unknown, the folder has no ``pause.csv``, or the number is negative or
        infinite.

    Examples
    --------
    >>> named_overhead(30).resume
    30.0
    """
    if name == "none":
        return None
    if name == "tiresias":
        return checkpoint_overhead()
    if isinstance(name, str) and (name == H100 or os.path.isdir(name)):
        return _measured(name)
    try:
        seconds = float(name)
    except (ValueError, OverflowError):
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ParamError(f"overhead {shown(repr(name))}: give {ACCEPTED}")
    return CheckpointOverhead({}, resume=seconds) if seconds > 0 else None


def _measured(source: str) -> Overhead:
    """Pause by model, and mean time to resume, of a measured folder."""
    pauses, resume_s = measured_folder(source).pauses()
    by_other_name = {
        name: pauses[job_type] for name, job_type in OTHER_NAMES.items() if job_type in pauses
    }
    return CheckpointOverhead(by_other_name | pauses, resume_s, fmean(pauses.values()))
