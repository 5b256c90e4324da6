"""How fast jobs run on each GPU type, alone and in pairs, by kinds of jobs instead of jobs."""

from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from repro.core.jobs import JobTable
from repro.errors import ParamError, TraceError
from repro.typing import Floats, Ints


@runtime_checkable
class ByType(Protocol):
    """A performance model that knows steps per second on each GPU type."""

    #: GPU type on which the durations of a trace are meant
    reference: str

    def speeds(self, model: str | None, gpus: int, gpu_types: Sequence[str | None]) -> list[float]:
        """Return the steps per second of a gang on each type."""

    def pair_speeds(
        self,
        model_a: str | None,
        gpus_a: int,
        model_b: str | None,
        gpus_b: int,
        gpu_types: Sequence[str | None],
    ) -> Floats:
        """Return the steps per second of two jobs on the same GPUs, shape (2, GPU types)."""


class Speeds:
    """Steps per second on the GPU types of a cluster; ones where nothing is known.

    ``perf`` is used if it is `ByType` and ``capacity``, the GPUs per type, tells types apart.
    """

    def __init__(
        self, table: JobTable, perf: object | None, capacity: Mapping[str | None, int]
    ) -> None:
        self.gpu_types: tuple[str | None, ...] = tuple(sorted(capacity, key=str))
        self.gpu_counts = np.array([capacity[kind] for kind in self.gpu_types], dtype=float)
        #: the performance model, if it knows GPU types; otherwise all speeds are ones
        self.perf: ByType | None = (
            perf if isinstance(perf, ByType) and None not in capacity else None
        )
        self.known = self.perf is not None
        self._table = table
        self._alone: dict[Hashable, Floats] = {}
        self._paired: dict[Hashable, Floats] = {}
        #: number of the kind of each job, -1 for none at the end; at number of the one * width +
        #: number of the other + 1: whether its speeds are known, and these
        self._codes = np.full(table.count + 1, -1)
        self._width = 1
        self._known = np.zeros(0, dtype=np.bool_)
        self._rows = np.zeros((0, 2, len(self.gpu_types)))

    def kind(self, job: int) -> tuple[str | None, int]:
        """Return what jobs of equal speed have in common: (model, GPUs of the gang)."""
        table = self._table
        # without speeds the model only tells jobs apart that are alike
        models = table.models if self.known else table.unread_models
        return models[job], table.gpus[job]

    def of(self, job: int) -> Floats:
        """Return steps per second on each type, 0 where the job cannot run; raise if on none."""
        model, gpus = kind = self.kind(job)
        found = self._alone.get(kind)
        if found is None:
            if self.perf is None:
                found = np.ones(len(self.gpu_types))
            else:
                try:
                    found = np.array(self.perf.speeds(model, gpus, self.gpu_types), dtype=float)
                except ParamError as error:
                    raise ParamError(f"job {self._table.ids[job]!r}: {error}") from None
            found = np.where(self.gpu_counts >= gpus, found, 0.0)
            if not (found > 0).any():
                raise self._nowhere(job)
            found.setflags(write=False)
            self._alone[kind] = found
        return found

    def pair(self, one: int, other: int) -> Floats:
        """Return steps per second of two jobs on the same GPUs, shape (2, GPU types)."""
        kinds = first, second = self.kind(one), self.kind(other)
        found = self._paired.get(kinds)
        if found is None:
            if self.perf is None:
                found = np.zeros((2, len(self.gpu_types)))
            else:
                found = self.perf.pair_speeds(*first, *second, self.gpu_types)
                found = np.where(self.gpu_counts >= first[1], found, 0.0)
            found.setflags(write=False)
            self._paired[kinds] = found
        return found

    def rows(self, members: Ints) -> Floats:
        """Return the steps per second of both members of rows, shape (rows, 2, GPU types).

        ``members`` has shape (rows, 2), -1 for no second job: then the speeds are repeated.
        """
        if not len(self._known):
            self._number()
        codes = self._codes.take(members)
        place = codes[:, 0] * self._width + codes[:, 1] + 1
        if not self._known.take(place).all():
            for number, (job, other) in zip(place.tolist(), members.tolist(), strict=True):
                if not self._known[number]:
                    self._rows[number] = self.of(job) if other < 0 else self.pair(job, other)
                    self._known[number] = True
        found: Floats = self._rows.take(place, axis=0)
        return found

    def _number(self) -> None:
        """Give every kind of job a number, and make room for speeds."""
        table, code = self._table, dict[Hashable, int]()
        for job in range(table.count):
            kind = self.kind(job) if self.known else table.gpus[job]
            self._codes[job] = code.setdefault(kind, len(code))
        self._width = len(code) + 1
        self._known = np.zeros(len(code) * self._width, dtype=np.bool_)
        self._rows = np.zeros((len(self._known), 2, len(self.gpu_types)))

    def steps_per_unit(self, jobs: Sequence[int]) -> Floats | float:
        """Return the steps of a unit of work; seconds where speeds are unknown."""
        table = self._table
        if self.perf is None:
            return np.array([table.solo[job] for job in jobs])
        if table.counts_steps:
            return 1.0
        found: Floats = self.on_reference[list(jobs)]
        for place in np.flatnonzero(np.isnan(found))[:1].tolist():
            # says what is missing
            self.perf.speeds(*self.kind(jobs[place]), (self.perf.reference,))
        return found

    @cached_property
    def on_reference(self) -> Floats:
        """Steps per second of each job on the type on which durations are meant, NaN if unknown."""
        assert self.perf
        known: dict[Hashable, float] = {}
        kinds = [self.kind(job) for job in range(self._table.count)]
        for kind in set(kinds):
            try:
                (known[kind],) = self.perf.speeds(*kind, (self.perf.reference,))
            except ParamError:
                known[kind] = np.nan
        return np.array([known[kind] for kind in kinds], dtype=float)

    def tell_rates(self, perf: object | None) -> bool:
        """Tell whether how fast every job runs under a performance model follows from here."""
        return perf is None or (self.known and bool((self.on_reference > 0).all()))

    def _nowhere(self, job: int) -> TraceError:
        model, gpus = self._table.models[job], self._table.gpus[job]
        have = ", ".join(
            f"{int(n)} {kind or 'GPUs'}"
            for kind, n in zip(self.gpu_types, self.gpu_counts, strict=True)
        )
        named = f" of {model!r}" if model else ""
        return TraceError(
            f"job {self._table.ids[job]!r}{named} asks for {gpus} GPUs of one type and can never "
            f"run on {have}; use a larger cluster, another type or drop the job"
        )
