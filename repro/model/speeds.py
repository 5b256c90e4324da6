"""How fast jobs run on each GPU type, alone and in pairs, by kinds of jobs instead of jobs."""

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats, Ints
from repro.model.jobs import JobTable

#: What reads models of jobs for speeds by GPU type, for messages.
READER = "a throughput table (--throughputs)"


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
        self.gpu_counts = np.array([capacity[gpu_type] for gpu_type in self.gpu_types], dtype=float)
        #: the performance model, if it knows GPU types; otherwise all speeds are ones
        self.perf: ByType | None = (
            perf if isinstance(perf, ByType) and None not in capacity else None
        )
        self.known = self.perf is not None
        #: the performance model of the run, whatever it knows
        self.model = perf
        self._table = table
        #: number of each kind of job, known once `codes` are
        self._kinds: dict[tuple[str | None, int], int] = {}

    def kind(self, job: int) -> tuple[str | None, int]:
        """Return what jobs of equal speed have in common: (model, GPUs of the gang)."""
        table = self._table
        # without speeds the model only tells jobs apart that are alike
        models: Sequence[str | None] = table.unread_models
        if self.known:
            models = table.named_models(READER)
        return models[job], table.gpus[job]

    @cached_property
    def codes(self) -> Ints:
        """Number of the kind of each job."""
        numbers = self._kinds
        kinds = map(self.kind, range(self._table.count))
        return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)

    @cached_property
    def alone(self) -> Floats:
        """Steps per second of a job of each kind on each type, NaN where `of` raises."""
        first = np.unique(self.codes, return_index=True)[1]
        found = np.full((len(first), len(self.gpu_types)), np.nan)
        for number, job in enumerate(first.tolist()):
            with contextlib.suppress(ParamError, TraceError):
                found[number] = self._look_up(job)
        found.setflags(write=False)
        return found

    @cached_property
    def pairs(self) -> Floats:
        """Steps per second of jobs of two kinds on the same GPUs, by [one, other, which of them].

        Shape (kinds, kinds, 2, GPU types); 0 where they cannot share GPUs.
        """
        count = self.codes.max(initial=-1) + 1
        shape = count, count, 2, len(self.gpu_types)
        if self.perf is None:
            return np.broadcast_to(0.0, shape)
        found = np.zeros(shape)
        for (one, gpus), a in self._kinds.items():
            for (other, width), b in self._kinds.items():
                if gpus == width:
                    pair = self.perf.pair_speeds(one, gpus, other, width, self.gpu_types)
                    found[a, b] = np.where(self.gpu_counts >= gpus, pair, 0.0)
        found.setflags(write=False)
        return found

    def of(self, job: int) -> Floats:
        """Return steps per second on each type, 0 where the job cannot run; raise if on none."""
        found: Floats = self.alone[self.codes[job]]
        return self._look_up(job) if np.isnan(found[0]) else found

    def _look_up(self, job: int) -> Floats:
        """Ask the performance model about a job."""
        model, gpus = self.kind(job)
        found = np.ones(len(self.gpu_types))
        if self.perf is not None:
            try:
                found = np.array(self.perf.speeds(model, gpus, self.gpu_types), dtype=float)
            except ParamError as error:
                raise ParamError(f"job {self._table.ids[job]!r}: {error}") from None
        found = np.where(self.gpu_counts >= gpus, found, 0.0)
        if not (found > 0).any():
            raise self._nowhere(job)
        return found

    def pair(self, one: int, other: int) -> Floats:
        """Return steps per second of two jobs on the same GPUs, shape (2, GPU types)."""
        found: Floats = self.pairs[self.codes[one], self.codes[other]]
        return found

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
        model = self._table.models[job]
        gpus = self._table.gpus[job]
        have = ", ".join(
            f"{int(n)} {gpu_type or 'GPUs'}"
            for gpu_type, n in zip(self.gpu_types, self.gpu_counts, strict=True)
        )
        named = f" of {model!r}" if model else ""
        return TraceError(
            f"job {self._table.ids[job]!r}{named} asks for {gpus} GPUs of one type and can never "
            f"run on {have}; use a larger cluster, another type or drop the job"
        )
