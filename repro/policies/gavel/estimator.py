"""Throughput of pairs of jobs that were never run together, from a few measurements (Gavel)."""

import random
from collections.abc import Hashable, Sequence

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats, Ints
from repro.perf.throughput import ThroughputTable

#: What decides an estimate: the model (its speed alone is known) and the reference it resembles.
Kind = tuple[str, str]

#: The artifact draws profiling from the experiment's seed plus this.
STREAM = 4
#: Root mean square change of an entry below which the search ends.
_STOP = 1e-3
_SWEEPS = 100


def complete(
    values: Floats, known: Flags, *, rank: int = 10, penalty: float = 1e-2, seed: int = 0
) -> Floats:
    """Return the matrix with its gaps filled by a product of two factors; known entries stay.

    The factors have ``rank`` columns, start at random, and their squares weigh ``penalty`` in the
    fit (Salakhutdinov and Mnih, NIPS 2007; Gavel, OSDI 2020, uses rank 10 and penalty 0.01).
    """
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((size, rank)) for size in values.shape)
    across = _patterns(known)
    down = _patterns(known.T)
    target = np.where(known, values, 0.0)
    ridge = penalty * np.eye(rank)
    product = left @ right.T
    for _ in range(_SWEEPS):
        left = _fit(right, across, target, ridge)
        right = _fit(left, down, target.T, ridge)
        before = product
        product = left @ right.T
        if np.sqrt(((product - before) ** 2).mean()) < _STOP:
            break
    return np.where(known, values, product)


def _patterns(known: Flags) -> list[tuple[Ints, Ints]]:
    """Return the columns known together in some rows, and those rows, for each set of columns."""
    held, of_row = np.unique(known, axis=0, return_inverse=True)
    return [(np.flatnonzero(one), np.flatnonzero(of_row == n)) for n, one in enumerate(held)]


def _fit(
    factor: Floats, patterns: list[tuple[Ints, Ints]], target: Floats, ridge: Floats
) -> Floats:
    """Return the best other factor by ridge regression; rows with the same gaps have one matrix."""
    answer: Floats = target @ factor
    for seen, rows in patterns:
        part = factor.take(seen, axis=0)
        answer[rows] = np.linalg.solve(part.T @ part + ridge, answer.take(rows, axis=0).T).T
    return answer


def slowdowns(table: ThroughputTable, models: Sequence[str], gpu_types: Sequence[str]) -> Floats:
    """Return the part of its speed, (model, GPU type), kept beside each model; 0 = cannot share."""
    kept = np.zeros((len(models), len(gpu_types), len(models)))
    alone = _alone(table, models, gpu_types)
    for i, one in enumerate(models):
        runs = alone[i] > 0
        for k, other in enumerate(models):
            pair = table.pair_speeds(one, 1, other, 1, gpu_types)[0]
            kept[i, runs, k] = np.minimum(1.0, pair[runs] / alone[i, runs])
    return kept


def _alone(table: ThroughputTable, models: Sequence[str], gpu_types: Sequence[str]) -> Floats:
    """Return steps/s on one GPU, shape (models, GPU types)."""
    rows = [table.rows[model, 1] for model in models]
    return np.array([[row.get(gpu_type, 0.0) for gpu_type in gpu_types] for row in rows])


class PairEstimator:
    """What a scheduler believes of pairs when only some were profiled.

    A new job is run together with a random part of the reference models. The gaps of its row are
    completed from the rows of the references, and the job is treated as the nearest of them (cosine
    distance): in a pair, two jobs keep the shares of their speeds that their references keep.
    Speeds alone are known, as is a pair on a GPU type where it has run (OSDI 2020, section 6).

    ``table`` holds the true speeds; ``fraction`` (0 to 1) of the (GPU type, reference) entries are
    profiled per job; ``references`` models are drawn from ``models``, by default the table's (in
    the artifact those of its workload generator, in its order). With ``artifact_index``,
    measurements are read where the artifact reads them: in the columns of the table's first models.
    """

    def __init__(
        self,
        table: ThroughputTable,
        gpu_types: Sequence[str],
        *,
        fraction: float = 0.2,
        references: int = 16,
        seed: int = 0,
        artifact_index: bool = False,
        models: Sequence[str] | None = None,
    ) -> None:
        if models is None:
            models = [model for model, width in table.rows if width == 1]
        if not 0 <= fraction <= 1:
            raise ParamError(f"profiling fraction is {fraction:g}; give a number from 0 to 1")
        if not 1 <= references <= len(models):
            raise ParamError(
                f"{references} reference models for profiling; the throughput table has "
                f"{len(models)} models on 1 GPU(s): give 1 to {len(models)}"
            )
        self._fraction = fraction
        self._artifact = artifact_index
        self._at = {model: row for row, model in enumerate(models)}
        self._rng = random.Random(seed + STREAM)
        chosen = sorted(self._rng.sample(range(len(models)), references))
        self.references = tuple(models[row] for row in chosen)
        self._alone = _alone(table, models, gpu_types)
        self._true = slowdowns(table, models, gpu_types)
        #: rows of the references beside each other, flattened over GPU types
        self._known = self._true[chosen][:, :, chosen].reshape(references, -1)
        self._norms = np.linalg.norm(self._known, axis=1)
        self._chosen = chosen
        self._kinds: dict[Hashable, Kind] = {}
        self._types = {held: column for column, held in enumerate(gpu_types)}
        self._seen: dict[frozenset[Kind], Flags] = {}

    def kind(self, job: Hashable, model: str) -> Kind:
        """Return what is believed of a job: its model and the reference it resembles."""
        if job not in self._kinds:
            if model not in self._at:
                raise ParamError(
                    f"job {job!r}: the throughput table has no pairs of model {model!r}; "
                    f"it has {', '.join(self._at)}"
                )
            nearest = self._nearest(self._at[model])
            if nearest is None:
                nearest = self._rng.choice(self.references)
            self._kinds[job] = (model, nearest)
        return self._kinds[job]

    def pair_speeds(self, one: Kind, other: Kind) -> Floats:
        """Return steps/s of both jobs when they share GPUs, shape (2, GPU types)."""
        seen = self._seen.get(frozenset((one, other)))
        return np.array([self._speed(a, b, seen) for a, b in ((one, other), (other, one))])

    def observe(self, one: Kind, other: Kind, gpu_type: str | None = None) -> None:
        """Record that jobs of these kinds ran together: their speeds are known from then on."""
        seen = self._seen.setdefault(
            frozenset((one, other)), np.zeros(len(self._types), dtype=np.bool_)
        )
        seen[slice(None) if gpu_type is None else self._types[gpu_type]] = True

    def _speed(self, one: Kind, other: Kind, seen: Flags | None) -> Floats:
        model, likened = one
        beside, likened_to = other
        kept = self._true[self._at[likened], :, self._at[likened_to]]
        if seen is not None:
            kept = np.where(seen, self._true[self._at[model], :, self._at[beside]], kept)
        speed: Floats = self._alone[self._at[model]] * kept
        return speed

    def _nearest(self, model: int) -> str | None:
        """Profile one job; return the reference nearest to it, None where nothing is known."""
        if self._fraction == 0:
            return None
        size = self._known.shape[1]
        measured = np.array([self._rng.uniform(0, 1) <= self._fraction for _ in range(size)])
        own = self._true[model]
        row = own.ravel()[:size] if self._artifact else own[:, self._chosen].ravel()
        values = np.vstack([self._known, np.where(measured, row, 0.0)])
        known = np.ones(values.shape, dtype=bool)
        known[-1] = measured
        if not measured.all():
            values = np.where(known, values, np.clip(complete(values, known), 0.0, 1.0))
        own = values[-1]
        if not np.linalg.norm(own) > 0:
            return None
        norms = np.maximum(self._norms * np.linalg.norm(own), 1e-300)
        return self.references[int(np.argmin(1 - self._known @ own / norms))]
