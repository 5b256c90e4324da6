"""Progress of a notebook: a file for the batch, a bar for a reader, lines for everyone else."""

import contextlib
import os
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from repro.base.errors import ReproError
from repro.base.ipython import shell
from repro.files.whole import write_whole

#: Variable with the address of the dask scheduler whose workers run the simulations.
ENV_SCHEDULER = "REPRO_SCHEDULER"
#: Variable with the file into which a notebook writes its progress.
ENV_PROGRESS = "REPRO_PROGRESS"
_LINE_EVERY_S = 10.0
#: Shorter sweeps show no bar.
_BAR_AFTER_S = 1.0


def in_batch() -> bool:
    """Whether `repro run` runs this notebook."""
    return bool(os.environ.get(ENV_PROGRESS))


def write_progress(done: int, total: int | None = None) -> None:
    """Write the number of simulations done, and the total if known, into the file of the batch."""
    path = Path(os.environ.get(ENV_PROGRESS, ""))
    # On another machine the folder of the batch does not exist. That must not fail the figure.
    if path.name and path.parent.is_dir():
        with contextlib.suppress(ReproError):
            write_whole(path, (f"{done}" if total is None else f"{done}/{total}").encode())


def progress_file_name() -> str:
    """Name of the file into which this notebook writes its progress; empty outside a batch."""
    return Path(os.environ.get(ENV_PROGRESS, "")).name


def read_progress() -> str:
    """Progress of this notebook in the batch, ``3`` or ``3/231``; empty if none is written yet."""
    try:
        return Path(os.environ.get(ENV_PROGRESS, "")).read_text()
    except OSError:
        return ""


@contextlib.contextmanager
def show_progress(done: int, total: int) -> Iterator[Callable[[int], None]]:
    """Yield the function that shows the number of simulations done.

    It moves a bar in a notebook that a reader runs. In a batch, or without IPython or tqdm, it
    prints a line at most every ten seconds.
    """
    bar = _bar(done, total) if shell() is not None and not in_batch() else None
    last_line_s = time.monotonic()

    def show(count: int) -> None:
        nonlocal last_line_s
        write_progress(count, total)
        if bar is not None:
            bar.update(count - bar.n)
        elif time.monotonic() - last_line_s > _LINE_EVERY_S:
            last_line_s = time.monotonic()
            print(f"{count} of {total} simulations", flush=True)

    with contextlib.nullcontext() if bar is None else bar:
        yield show


def _bar(done: int, total: int) -> Any:
    """Progress bar of tqdm; None where tqdm is absent."""
    with warnings.catch_warnings():
        # Without widgets the bar is text, which is fine.
        warnings.simplefilter("ignore")
        try:
            from tqdm.auto import tqdm
        except ImportError:
            return None
    return tqdm(total=total, initial=done, unit="simulation", delay=_BAR_AFTER_S, leave=False)
