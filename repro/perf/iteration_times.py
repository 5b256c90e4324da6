"""Time of an iteration by number of GPUs, for the models of the map of names (`model_names`)."""

from __future__ import annotations

from functools import cache

from repro.files.tables import ModelTable
from repro.perf.model_names import mapped_models
from repro.perf.muri_models import muri_profiles, nearest_count
from repro.perf.speedup import pcs_iteration_s

#: Tables with times of iterations, in the order in which they count.
ORDER = ("muri", "tiresias", "pcs")
_TIRESIAS = ModelTable("tiresias_iterations.csv", ("model", "num_gpus", "iteration_s"))


@cache
def iteration_s(model: str, gpus: int) -> float | None:
    """Seconds per iteration of a model of the map; None if none of the tables below has it.

    The time is that of the first table that has the model itself, not only a relative of it. The
    tables are, in order: Muri's (stage times), Tiresias' (60-job trace), PCS's (speed-up curves).
    In the first two, a number of GPUs that the table lacks has the time of the nearest number. In
    the third, the curve goes on as `SpeedUp` says.

    Parameters
    ----------
    model : str
        A model of `mapped_models`.
    gpus : int
        GPUs of the job.

    Examples
    --------
    >>> iteration_s("vgg16", 2), iteration_s("vgg11", 64), iteration_s("lm", 1)
    (0.191, 1.105, None)
    """
    mapped = mapped_models()[model]
    source = next((table for table in ORDER if mapped.is_itself_in(table)), None)
    if source is None:
        return None
    name = mapped.names[source]
    if source == "pcs":
        return pcs_iteration_s(name, gpus)
    times = _times()[source, name]
    return times[nearest_count(times, gpus)]


@cache
def _times() -> dict[tuple[str, str], dict[int, float]]:
    """Seconds per iteration by number of GPUs, of each table and model."""
    frames = {
        "muri": muri_profiles().rename(columns={"iteration_time": "iteration_s"}),
        "tiresias": _TIRESIAS.frame,
    }
    times: dict[tuple[str, str], dict[int, float]] = {}
    for table, frame in frames.items():
        columns = (frame[name].tolist() for name in ("model", "num_gpus", "iteration_s"))
        for model, count, seconds in zip(*columns, strict=True):
            times.setdefault((table, model), {})[int(count)] = float(seconds)
    return times
