"""Notes on the parts of a trace that are lost when it is written in a format."""

from collections.abc import Collection

import pandas as pd

from repro.base.counts import quantity


def notes_on_lost(frame: pd.DataFrame, written: Collection[str], format: str) -> list[str]:
    """Lines on parts of a GPU and on the columns that a format has no place for.

    Parameters
    ----------
    frame : DataFrame
        A valid trace.
    written : collection of str
        Columns that the format holds.
    format : str
        Name of the format in the lines.

    Examples
    --------
    >>> jobs = pd.DataFrame({"job_id": [0], "gpu_share": [0.5], "vc": ["a"]})
    >>> for note in notes_on_lost(jobs, ["job_id"], "SWF"):
    ...     print(note)
    1 job with a part of a GPU written with whole GPUs
    not written, as SWF has no field for them: vc
    """
    notes = []
    if "gpu_share" in frame and (parts := int((frame["gpu_share"] < 1).sum())):
        notes.append(f"{quantity(parts, 'job')} with a part of a GPU written with whole GPUs")
    if lost := [str(name) for name in frame if name not in {*written, "gpu_share"}]:
        notes.append(f"not written, as {format} has no field for them: {', '.join(lost)}")
    return notes
