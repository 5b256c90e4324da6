"""Generators of synthetic traces, by name: ``make("testbed", rng)``.

A trace follows from the options, the tables that the generator reads, and the random generator or
seed passed to it. The same state of the random generator gives the same trace.
"""

import inspect
from collections.abc import Callable
from pathlib import Path
from types import NoneType
from typing import Any, get_args, get_type_hints

import numpy as np
import pandas as pd

from repro.base.counts import is_count
from repro.base.errors import ParamError, refuse_unknown
from repro.files import public
from repro.model.registry import Registry

#: A generator: ``(rng, **options) -> trace``. A generator that repeats the random streams of a
#: public simulator takes a whole number ``seed`` instead of ``rng``.
Generator = Callable[..., pd.DataFrame]

generators: Registry[Generator] = Registry("generator", "repro.trace.synth")

#: Number of jobs in PCS's traces of Philly's virtual clusters.
_PCS_JOBS = {
    "0e4a51": 2465,
    "103959": 2677,
    "11cb48": 19048,
    "2869ce": 956,
    "51b7ef": 63,
    "6214e9": 51258,
    "6c71a0": 14783,
    "7f04ca": 1461,
    "b436b2": 9031,
    "e13805": 938,
    "ed69ec": 1400,
    "ee9e8c": 5452,
}
#: Format or public file -> generator of its stand-in. Other formats and files have no stand-in.
_STAND_INS = {
    "elasticflow": "elasticflow-like",
    "philly": "philly-like",
    "muri": "muri-like",
    **{f"pcs-{vc}": "pcs-like" for vc in _PCS_JOBS},
    "pcs-themis1": "pcs-workload",
    "tiresias-60": "testbed",
    "history": "gpu-time-quantiles",
    "throughputs": "gavel-like-throughputs",
    "gavel-max-min-fairness": "gavel-physical",
    "gavel-minimize-makespan": "gavel-physical",
}
#: Public file -> options of its generator that differ from the defaults.
_STAND_IN_OPTIONS: dict[str, dict[str, Any]] = {
    "tiresias-60": {"jobs": 60, "gaps": "poisson"},
    "gavel-max-min-fairness": {"at_start": 36, "large_batches": True},
    "gavel-minimize-makespan": {"jobs": 100, "rate": None, "max_hours": 5.0, "durations": 10},
    **{f"pcs-{vc}": {"workload": f"workload_{vc}", "jobs": n} for vc, n in _PCS_JOBS.items()},
    "pcs-themis1": {"workload": "themis-scaled-2", "jobs": 101, "load": 1.04, "num_gpus": 16},
    "muri-testbed": {"trace": "testbed"},
    **{f"muri-trace{trace}": {"trace": trace} for trace in "1234"},
    **{f"muri-trace{trace}-pr": {"trace": trace, "at_once": True} for trace in "1234"},
    **{f"elasticflow-{cluster:02}": {"cluster": cluster} for cluster in range(1, 11)},
    **{f"muri-types{number}": {"trace": "3", "job_types": number} for number in range(1, 5)},
}


def make(name: str, rng: np.random.Generator | int, **options: Any) -> pd.DataFrame:
    """Generate a trace.

    Parameters
    ----------
    name : str
        A name in ``generators``.
    rng : numpy.random.Generator or int
        The only source of randomness. If the trace generator takes a seed (:func:`takes_seed`), a
        whole number is the seed, and a numpy generator draws the seed. For other trace generators,
        the jobs of seed N differ from those of ``repro simulate --trace NAME --seed N``.
    **options
        Passed to the generator; a number is above 0, or the default.

    Returns
    -------
    DataFrame
        Jobs with the columns of a trace, times in seconds. ``attrs`` hold name, synthetic (True),
        and options, with the defaults.

    Raises
    ------
    ParamError
        If the generator or an option is unknown, an option has a value that is not accepted, or
        ``rng`` is neither a numpy generator nor a whole number of 0 or more.

    Examples
    --------
    >>> make("testbed", np.random.default_rng(0), jobs=60)["num_gpus"].value_counts().to_dict()
    {1: 30, 8: 11, 4: 10, 2: 5, 16: 3, 32: 1}
    """
    generator = generators[name]
    accepted = inspect.signature(generator).parameters
    first_argument, *names = accepted
    refuse_unknown(f"generator {name!r} has no option", options, names)
    hints = get_type_hints(generator)
    for option, value in options.items():
        types = {hints[option], *get_args(hints[option])}
        if Path in types and not isinstance(value, str | Path):
            # a trace keeps the name of its table, so that others can load the table again
            kind = type(value).__name__
            raise ParamError(f"{option}: give the name or path of a table, not a {kind}")
        if value != accepted[option].default:
            _check_option(option, value, types)
    if not isinstance(rng, np.random.Generator) and not is_count(rng):
        raise ParamError(f"rng={rng!r}: give a numpy generator, or a whole number of 0 or more")
    source: np.random.Generator | int = np.random.default_rng(rng)
    if first_argument == "seed":
        source = int(rng.integers(2**32)) if isinstance(rng, np.random.Generator) else int(rng)
    frame = generator(source, **options)
    defaults = {option: accepted[option].default for option in names}
    frame.attrs |= {"name": name, "synthetic": True, "options": defaults | options}
    return frame


def _check_option(option: str, value: Any, types: set[Any]) -> None:
    """Raise unless a value is a flag, or a (whole) number above 0, as the annotation says."""
    if value is None and NoneType in types:
        return
    if bool in types and not isinstance(value, bool):
        raise ParamError(f"{option}={value!r}: give true or false")
    if types & {int, float}:
        is_integer = float not in types
        accepted = (int, np.integer) if is_integer else (int, float, np.integer, np.floating)
        is_number = isinstance(value, accepted) and not isinstance(value, bool)
        if not is_number or not 0 < value < np.inf:
            noun = "whole number" if is_integer else "number"
            raise ParamError(f"{option}={value!r}: give a {noun} above 0")


def takes_seed(name: str) -> bool:
    """Whether the first argument of a generator is a whole-number seed."""
    return next(iter(inspect.signature(generators[name]).parameters)) == "seed"


def stand_in_for(name: str) -> tuple[str | None, dict[str, Any]]:
    """Name the generator that replaces a public file, or None, and its options."""
    file_format = public.entry(name).format if public.is_known(name) else ""
    return _STAND_INS.get(name) or _STAND_INS.get(file_format), _STAND_IN_OPTIONS.get(name, {})
