"""Gavel's traces for its physical cluster: few durations, gangs of up to four GPUs."""

from __future__ import annotations

from random import Random

import numpy as np
import pandas as pd

from repro.errors import ParamError
from repro.perf.synthetic_throughputs import job_types
from repro.perf.throughput_files import PUBLIC
from repro.trace.synth.draws import flags, positive
from repro.trace.synth.gavel import Job, Source, as_trace, gang_size, gap
from repro.trace.synth.registry import generators


@generators.register("gavel-physical")
def gavel_physical(
    seed: int,
    jobs: int = 96,
    rate: float | None = 4.6,
    at_start: int = 1,
    multiple: bool = True,
    min_hours: float = 1.0,
    max_hours: float = 4.0,
    durations: int = 4,
    large_batches: bool = False,
    throughputs: Source = PUBLIC,
) -> pd.DataFrame:
    """Draw a trace as Gavel's generator for its physical cluster does.

    Options: ``rate`` in jobs per hour, None if all are submitted at 0; ``at_start`` jobs are
    submitted at 0 before others arrive; with ``multiple``, distributed job types take 1, 2 or 4
    GPUs (70, 10 and 20 %); ``durations`` different lengths on V100s, evenly spaced from
    ``min_hours`` to ``max_hours``; with ``large_batches``, only the two largest batch sizes of the
    distributed models. Submissions are whole seconds, steps whole.

    Gavel, OSDI 2020, Table 3; artifact ``scripts/utils/generate_trace.py``.
    """
    for option, value in (("jobs", jobs), ("at_start", at_start), ("durations", durations)):
        positive(option, value, whole=True)
    positive("min_hours", min_hours)
    positive("max_hours", max_hours)
    if min_hours > max_hours:
        raise ParamError(f"max_hours={max_hours!r}: give {min_hours:g} (min_hours) or more")
    flags(multiple=multiple, large_batches=large_batches)
    if rate is not None:
        positive("rate", rate)
    kinds = job_types()
    if large_batches:
        kinds = tuple(kind for kind in kinds if kind.distributed)
        held = [kind.model for kind in kinds]
        kinds = tuple(k for n, k in enumerate(kinds) if held[n:].count(k.model) <= 2)
    lengths = np.linspace(min_hours, max_hours, durations).tolist()
    # the seed is that of the job types; arrivals, durations and gangs have the next three
    types, gaps, hours, gangs = (Random(seed + offset) for offset in range(4))
    now, drawn = 0.0, []
    for number in range(jobs):
        kind = types.choice(kinds)
        gpus = gang_size(gangs.random(), wide=False) if multiple and kind.distributed else 1
        drawn.append(Job(float(int(now)), kind.name, gpus, 3600.0 * hours.choice(lengths)))
        if rate is not None and number + 1 >= at_start:
            now += gap(gaps, rate)
    return as_trace(drawn, throughputs, whole=True)
