"""How long a batch takes on a number of workers, from the CPU times of earlier runs."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from repro.figures.costs import ParallelBatch
from repro.figures.params import FigureEntry
from repro.figures.saved import read_result


@dataclass(frozen=True)
class Load:
    """Recorded work of a figure: what its notebook does itself, then its parallel batches.

    The simulations of a parallel batch can run at the same time. The batches follow each other.
    """

    id: str
    #: CPU time (s) of the notebook, with the simulations that it runs itself
    own_s: float
    parallel_batches: tuple[ParallelBatch, ...] = ()
    #: whether the result records parallel batches; if it does not, all work is ``own_s``
    is_divided: bool = True

    @property
    def cpu_s(self) -> float:
        """CPU time (s) of all work."""
        return self.own_s + sum(batch.cpu_s for batch in self.parallel_batches)

    @property
    def critical_path_s(self) -> float:
        """Time (s) on unlimited workers.

        It is the own work and the longest simulation of each parallel batch.
        """
        return self.own_s + sum(batch.longest_s for batch in self.parallel_batches)

    @property
    def longest_s(self) -> float:
        """CPU time (s) of the longest simulation of all parallel batches."""
        return max((batch.longest_s for batch in self.parallel_batches), default=0.0)


def load_of(figure_id: str, result: Mapping[str, Any]) -> Load:
    """Work of a figure, from a result.

    >>> record = {"cpu_s": 10.0, "rounds": [{"simulations": 3, "cpu_s": 7.0, "longest_s": 4.0}]}
    >>> load = load_of("gavel/fig08", record)
    >>> load.own_s, load.critical_path_s
    (3.0, 7.0)
    """
    recorded = result.get("rounds")
    batches = tuple(ParallelBatch(**costs) for costs in recorded or ())
    total_s = float(result.get("cpu_s") or result.get("wall_s") or 0.0)
    own_s = max(0.0, total_s - sum(batch.cpu_s for batch in batches))
    return Load(figure_id, own_s, batches, recorded is not None)


def recorded_loads(
    entries: Sequence[FigureEntry], profile: str, folders: Sequence[Path]
) -> tuple[list[Load], list[str]]:
    """Work of the figures that have a result of the profile, and the ids of the other figures.

    The result comes from the first folder that has one. A result of a later folder is preferred if
    it records parallel batches and the earlier results do not.
    """
    loads = []
    unknown = []
    for entry in entries:
        results = (read_result(folder / entry.id)[0] for folder in folders)
        fitting = [result for result in results if result.get("profile") == profile]
        # a result that divides the work comes before one that does not
        fitting.sort(key=lambda result: result.get("rounds") is None)
        if fitting:
            loads.append(load_of(entry.id, fitting[0]))
        else:
            unknown.append(entry.id)
    return loads, unknown


def least_s(loads: Sequence[Load], workers: int) -> float:
    """Lower bound (s) of the time of a batch: its critical path, or all work in equal parts.

    >>> loads = [Load("a", 6.0), Load("b", 1.0, (ParallelBatch(4, 8.0, 2.0),))]
    >>> least_s(loads, 2), least_s(loads, 5)
    (7.5, 6.0)
    """
    longest = max((load.critical_path_s for load in loads), default=0.0)
    return max(longest, sum(load.cpu_s for load in loads) / workers)


def most_s(loads: Sequence[Load], workers: int) -> float:
    """Upper bound (s) if no worker idles while work waits (Graham 1966).

    >>> most_s([Load("a", 6.0), Load("b", 1.0, (ParallelBatch(4, 8.0, 2.0),))], 2)
    10.5
    """
    longest = max((load.critical_path_s for load in loads), default=0.0)
    return sum(load.cpu_s for load in loads) / workers + longest * (1 - 1 / workers)


def expected_s(loads: Sequence[Load], workers: int) -> float:
    """Time (s) of a batch that a schedule of its recorded work gives.

    Figures begin with the most CPU time first. (In `repro run` the papers take turns.) Simulations
    of begun figures come before further figures. In a parallel batch, all simulations but the
    longest count as equally long.

    >>> expected_s([Load("a", 6.0), Load("b", 1.0, (ParallelBatch(4, 8.0, 2.0),))], 2)
    8.0
    """
    most_first = sorted(loads, key=lambda load: -load.cpu_s)
    remaining = [_stages(load) for load in most_first]
    # a stage is the notebook's own work, or a parallel batch; it ends with the last of its pieces
    pieces_left = [0] * len(most_first)
    waiting: list[tuple[bool, int, float]] = []
    running: list[tuple[float, int]] = []
    now_s = 0.0

    def begin_stage(number: int) -> None:
        pieces = next(remaining[number], [])
        is_first = not pieces_left[number] and number not in begun
        begun.add(number)
        pieces_left[number] = len(pieces)
        for piece_s in pieces:
            heapq.heappush(waiting, (is_first, number, -piece_s))

    begun: set[int] = set()
    for number in range(len(most_first)):
        begin_stage(number)
    while waiting or running:
        while waiting and len(running) < workers:
            _, number, negative_s = heapq.heappop(waiting)
            heapq.heappush(running, (now_s - negative_s, number))
        now_s, number = heapq.heappop(running)
        pieces_left[number] -= 1
        if not pieces_left[number]:
            begin_stage(number)
    return now_s


def _stages(load: Load) -> Iterator[list[float]]:
    """Yield the pieces (s) of a figure that can run at the same time, stage by stage."""
    yield [load.own_s]
    for batch in load.parallel_batches:
        others = batch.simulations - 1
        each_s = (batch.cpu_s - batch.longest_s) / others if others else 0.0
        yield [batch.longest_s, *[each_s] * others]
