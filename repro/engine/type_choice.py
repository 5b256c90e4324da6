"""Choice of a GPU type for gangs whose policy does not name types."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from repro.base.errors import TraceError
from repro.base.typing import Floats
from repro.model.jobs import JobTable
from repro.model.speeds import Speeds

#: Trace column with the GPU type that a job asks for.
WISH = "gpu_type"
#: Option of the command line, and argument in Python, under which jobs run on any type.
_ANY_TYPE = "--types fastest (types='fastest')"


class TypeChoice:
    """GPU types on which each job can run, fastest first.

    Parameters
    ----------
    table : JobTable
        Jobs of the simulation.
    speeds : Speeds
        Speed of each job on each GPU type.
    follows_wishes : bool
        A job runs only on a type that it asks for in the trace column ``gpu_type``. Several types
        have a bar between them (``v100|p100``). A job that asks for none runs on any type.
    divides : bool
        Jobs may hold fewer GPUs than their demand, so that a type may have fewer than the demand.
    """

    def __init__(
        self, table: JobTable, speeds: Speeds, *, follows_wishes: bool, divides: bool
    ) -> None:
        self.gpu_types = speeds.gpu_types
        self.gpu_counts = speeds.gpu_counts
        self._table = table
        self._speeds = speeds
        self._divides = divides
        self._follows_wishes = follows_wishes
        self._types_by_speed: dict[int, tuple[int, ...]] = {}

    def types_by_speed(self, job: int) -> tuple[int, ...]:
        """Indices of the GPU types on which a job can run, fastest first.

        Equally fast types are in alphabetical order.
        """
        columns = self._types_by_speed.get(job)
        if columns is None:
            speeds = self.speeds(job)
            by_speed = np.argsort(-speeds, kind="stable").tolist()
            columns = self._types_by_speed[job] = tuple(c for c in by_speed if speeds[c] > 0)
        return columns

    def names_by_speed(self, job: int) -> list[str | None]:
        """GPU types on which a job can run, fastest first."""
        return [self.gpu_types[column] for column in self.types_by_speed(job)]

    def speeds(self, job: int) -> Floats:
        """Speed of a job on each type, (GPU types,); 0 where it cannot run.

        Raises
        ------
        TraceError
            If the job can run on no type.
        """
        speeds = self._speeds.speeds_of(job, whole_gang=not self._divides)
        wish = None if self._wish_of is None else self._wish_of[job]
        if wish is None:
            return speeds
        names = wish.split("|")
        wished: Floats = np.where([name in names for name in self.gpu_types], speeds, 0.0)
        if not wished.any():
            raise self._no_type(job, wish)
        return wished

    def _no_type(self, job: int, wish: str) -> TraceError:
        """Error for a job that can run on none of the types that it asks for."""
        gpus = self._table.gpus[job]
        counts = zip(self.gpu_types, self.gpu_counts, strict=True)
        largest = max(count for name, count in counts if name in wish.split("|"))
        reason = "its speed there is 0"
        if gpus > largest:
            reason = f"the cluster has at most {largest:g} of a type"
        return TraceError(
            f"job {self._table.ids[job]!r} asks for {gpus} GPUs of type {wish!r} and can never run "
            f"there: {reason}; use another cluster, drop the job, or give {_ANY_TYPE}"
        )

    def _absent_type(self, job: int, wish: str) -> TraceError:
        """Error for a job whose types the cluster lacks, or spells otherwise."""
        present = [str(name) for name in self.gpu_types]
        by_letters = {name.casefold(): name for name in present}
        pairs = [
            f"{name} and {by_letters[name.casefold()]}"
            for name in wish.split("|")
            if name.casefold() in by_letters
        ]
        remedy = "use another cluster"
        if pairs:
            listed = ", ".join(pairs)
            remedy = f"{listed} differ only in case; spell the type as the cluster does"
        return TraceError(
            f"job {self._table.ids[job]!r} asks for GPUs of type {wish!r}; the cluster has "
            f"{', '.join(present)}: {remedy}, or give {_ANY_TYPE}"
        )

    @cached_property
    def _wish_of(self) -> Sequence[str | None] | None:
        """GPU types that each job asks for; None: wishes have no effect.

        The column is read with the first choice, because a column that is read counts as used.
        """
        if not self._follows_wishes or not self._table.has(WISH):
            return None
        column = self._table.column(WISH, gaps=True)
        return [wish if isinstance(wish, str) else None for wish in column]

    def check_wishes(self) -> None:
        """Raise TraceError for the first job that can run on none of the types it asks for."""
        present = set(self.gpu_types)
        checked = set[tuple[str, int]]()
        for job, wish in enumerate(self._wish_of or ()):
            if wish is None:
                continue
            if present.isdisjoint(wish.split("|")):
                raise self._absent_type(job, wish)
            kind = wish, int(self._speeds.kind_codes[job])
            if kind not in checked:
                checked.add(kind)
                self.speeds(job)
