"""Throughput of jobs by GPU type, alone and in pairs, stored by kind of job."""

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from repro.base.errors import ParamError, TraceError
from repro.base.typing import Floats, Ints
from repro.model.jobs import JobTable

#: Input that needs the column ``model``, for messages.
NEEDS_MODEL = "a throughput table (--throughputs)"
#: Relative difference below which two speeds are equal.
SAME_SPEED = 1e-12


@runtime_checkable
class ByType(Protocol):
    """A performance model with the throughput of a job on each GPU type."""

    #: GPU type to which the durations of a trace refer
    reference: str

    def speeds(self, model: str | None, gpus: int, gpu_types: Sequence[str | None]) -> list[float]:
        """Throughput of a gang on each GPU type (steps/s), (GPU types,)."""

    def pair_speeds(
        self,
        model_a: str | None,
        gpus_a: int,
        model_b: str | None,
        gpus_b: int,
        gpu_types: Sequence[str | None],
    ) -> Floats:
        """Throughput of two jobs on the same GPUs (steps/s), (2, GPU types)."""


class Speeds:
    """Throughput of jobs on the GPU types of a cluster (steps/s); 1 without a performance model.

    ``perf`` is used if it is `ByType` and the GPU types in ``capacity`` (GPUs of each) have names.
    A model `perf.on_types.OnTypes` combines throughputs with a base model. Then `throughput_model`
    is the whole model, and `performance` is its base.

    Under rules that count steps, rounds use throughputs as rates. All other runs divide throughputs
    by those on the reference type. ``in_rounds``: the policy is a `SharePolicy`, which has rounds.
    """

    def __init__(
        self,
        table: JobTable,
        perf: object | None,
        capacity: Mapping[str | None, int],
        *,
        in_rounds: bool = False,
    ) -> None:
        self.gpu_types: tuple[str | None, ...] = tuple(sorted(capacity, key=str))
        self.gpu_counts = np.array([capacity[gpu_type] for gpu_type in self.gpu_types], dtype=float)
        #: the performance model, if it has throughputs by GPU type; otherwise all speeds are 1
        self.throughput_model: ByType | None = None
        if isinstance(perf, ByType) and None not in capacity:
            self.throughput_model = perf
        #: whether there are throughputs by GPU type
        self.has_throughputs = self.throughput_model is not None
        #: the performance model of the run, of any class. If it has a base model (`OnTypes`), this
        #: is the base.
        self.performance = getattr(perf, "base", perf)
        self._table = table
        self._runs_at_throughput = in_rounds and table.counts_steps
        #: index of each kind, filled by `kind_codes`
        self._kinds: dict[tuple[str | None, int], int] = {}

    def kind(self, job: int) -> tuple[str | None, int]:
        """Kind of a job, equal for jobs of equal speed: (model, demand in GPUs).

        Without throughputs the model has no effect: it is no part of the kind, and its column does
        not count as an input.
        """
        table = self._table
        if not self.has_throughputs:
            return None, table.gpus[job]
        return table.named_models(NEEDS_MODEL)[job], table.gpus[job]

    @cached_property
    def kind_codes(self) -> Ints:
        """Number of the kind of each job, (jobs,)."""
        numbers = self._kinds
        kinds = map(self.kind, range(self._table.count))
        return np.array([numbers.setdefault(kind, len(numbers)) for kind in kinds], dtype=np.int64)

    @cached_property
    def single(self) -> Floats:
        """Throughput of each kind alone (steps/s), (kinds, types); NaN where `speeds_of` raises."""
        first_jobs = np.unique(self.kind_codes, return_index=True)[1]
        speeds = np.full((len(first_jobs), len(self.gpu_types)), np.nan)
        for number, job in enumerate(first_jobs.tolist()):
            with contextlib.suppress(ParamError, TraceError):
                speeds[number] = self._look_up(job)
        speeds.setflags(write=False)
        return speeds

    @cached_property
    def pairs(self) -> Floats:
        """Throughput of two kinds a and b on the same GPUs (steps/s), (kinds, kinds, 2, GPU types).

        Entry [a, b, 0] is the throughput of a, and entry [a, b, 1] the throughput of b. Both are 0
        if a and b cannot share GPUs of the type.
        """
        count = self.kind_codes.max(initial=-1) + 1
        shape = count, count, 2, len(self.gpu_types)
        if self.throughput_model is None:
            return np.broadcast_to(0.0, shape)
        speeds = np.zeros(shape)
        for (model_a, gpus_a), a in self._kinds.items():
            for (model_b, gpus_b), b in self._kinds.items():
                if gpus_a == gpus_b:
                    pair = self.throughput_model.pair_speeds(
                        model_a, gpus_a, model_b, gpus_b, self.gpu_types
                    )
                    speeds[a, b] = np.where(self.gpu_counts >= gpus_a, pair, 0.0)
        speeds.setflags(write=False)
        return speeds

    def speeds_of(self, job: int, *, whole_gang: bool = True) -> Floats:
        """Throughput of a job on each GPU type (steps/s), (GPU types,); 0 if it cannot run there.

        With ``whole_gang`` a type needs as many GPUs as the job demands.

        Raises
        ------
        TraceError
            If the job can run on no GPU type of the cluster.
        ParamError
            If the performance model has no speeds of the job.
        """
        if not whole_gang:
            return self._look_up(job, whole_gang=False)
        speeds: Floats = self.single[self.kind_codes[job]]
        return self._look_up(job) if np.isnan(speeds[0]) else speeds

    def _look_up(self, job: int, *, whole_gang: bool = True) -> Floats:
        """Throughput of a job by the performance model (steps/s), (GPU types,)."""
        model, gpus = self.kind(job)
        speeds = np.ones(len(self.gpu_types))
        if self.throughput_model is not None:
            try:
                speeds = np.array(
                    self.throughput_model.speeds(model, gpus, self.gpu_types), dtype=float
                )
            except ParamError as error:
                raise ParamError(f"job {self._table.ids[job]!r}: {error}") from None
        if whole_gang:
            speeds = np.where(self.gpu_counts >= gpus, speeds, 0.0)
        if not (speeds > 0).any():
            raise self._never_fits(job)
        return speeds

    def pair(self, job: int, partner: int) -> Floats:
        """Throughput of two jobs on the same GPUs (steps/s), (2, GPU types)."""
        speeds: Floats = self.pairs[self.kind_codes[job], self.kind_codes[partner]]
        return speeds

    def steps_per_unit(self, jobs: Sequence[int]) -> Floats | float:
        """Training steps per unit of work, (jobs,).

        Without throughputs, a second of running alone counts as a step, so the result is the time
        of a unit alone (s). With throughputs and a step as unit, it is the number 1.0.
        """
        table = self._table
        if self.throughput_model is None:
            return np.array([table.solo[job] for job in jobs])
        if table.counts_steps:
            return 1.0
        speeds: Floats = self.on_reference[list(jobs)]
        for index in np.flatnonzero(np.isnan(speeds))[:1].tolist():
            # this look-up raises an error with the missing throughput
            self.throughput_model.speeds(
                *self.kind(jobs[index]), (self.throughput_model.reference,)
            )
        unit_s: Floats = np.array([table.solo[job] for job in jobs])
        steps: Floats = speeds * unit_s
        return steps

    @cached_property
    def on_reference(self) -> Floats:
        """Throughput of each job on the reference GPU type (steps/s), (jobs,); NaN if unknown."""
        assert self.throughput_model
        return self._on_type(self.throughput_model.reference)

    def _on_type(self, gpu_type: str | None) -> Floats:
        """Throughput of each job on a GPU type (steps/s), (jobs,); NaN if unknown."""
        assert self.throughput_model
        speed: dict[Hashable, float] = {}
        kinds = [self.kind(job) for job in range(self._table.count)]
        for kind in set(kinds):
            try:
                (speed[kind],) = self.throughput_model.speeds(*kind, (gpu_type,))
            except ParamError:
                speed[kind] = np.nan
        return np.array([speed[kind] for kind in kinds], dtype=float)

    def slowdowns(self, gpu_type: str | None) -> Floats:
        """Time of each job alone on a GPU type over its time in the trace, (jobs,).

        It is 1 without throughputs by type, and where a throughput is not known or 0.
        """
        table = self._table
        if not self.has_throughputs:
            return np.ones(table.count)
        in_trace = self.on_reference
        if self._runs_at_throughput:
            in_trace = 1.0 / np.array(table.solo)
        with np.errstate(divide="ignore", invalid="ignore"):
            slowdowns: Floats = in_trace / self._on_type(gpu_type)
        is_known = np.isfinite(slowdowns) & (slowdowns > 0)
        # rounding must not separate jobs that are equal on the type of the trace
        is_one = np.abs(slowdowns - 1.0) < SAME_SPEED
        return np.where(is_known & ~is_one, slowdowns, 1.0)

    def rates_follow(self, perf: object | None) -> bool:
        """Whether the rates of all jobs follow from these throughputs.

        They do without a performance model ``perf``. With a throughput table as ``perf`` they do if
        every job has a throughput above 0 on the reference type. With any other model, also one
        with a base model, they do not.
        """
        has_base = self.performance is not perf
        if perf is None or has_base or not self.has_throughputs:
            return perf is None
        return bool((self.on_reference > 0).all())

    def _never_fits(self, job: int) -> TraceError:
        """Error for a job that can run on no GPU type of the cluster."""
        model = self._table.models[job]
        gpus = self._table.gpus[job]
        capacity = ", ".join(
            f"{int(count)} {gpu_type or 'GPUs'}"
            for gpu_type, count in zip(self.gpu_types, self.gpu_counts, strict=True)
        )
        of_model = f" of {model!r}" if model else ""
        return TraceError(
            f"job {self._table.ids[job]!r}{of_model} asks for {gpus} GPUs of one type and can "
            f"never run on {capacity}; use a larger cluster, another type or drop the job"
        )
