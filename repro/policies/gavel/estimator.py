"""Estimated throughputs of pairs of models, from a few measurements (Gavel, section 6).

A pair is described by the fraction of its throughput that each model retains. Let R be the matrix
of retained fractions. A row of R is a model. A column is a GPU type and a reference model as the
partner.

1. The rows of the reference models are measured beforehand.
2. For a new job, each entry of its row is measured with probability ``fraction``.
3. R is completed as U V^T (`complete`). U and V minimise the squared errors of the measured entries
   plus ``penalty`` times the squared entries of U and V.
4. The reference model of least cosine distance to the completed row stands in for the new job.

Ties: the first reference model in the order of the models. A job whose completed row is 0, as it is
without any measurement, gets a random reference model.
"""

import functools
import random
from collections.abc import Hashable, Sequence

import numpy as np

from repro.base.errors import ParamError
from repro.base.typing import Flags, Floats, Ints
from repro.perf.throughput import ThroughputTable

#: Model of a job, and the reference model that it resembles.
Match = tuple[str, str]

#: The artifact seeds the random stream of profiling with the experiment's seed plus this number.
STREAM = 4
#: Root mean square change of an entry below which the completion ends.
_STOP = 1e-3
#: Largest number of sweeps of the completion.
_SWEEPS = 100


def complete(
    values: Floats, known: Flags, *, rank: int = 10, penalty: float = 1e-2, seed: int = 0
) -> Floats:
    """Matrix with its unknown entries replaced by a product of two factors.

    The factors are fitted in turn by ridge regression, from a random start (Salakhutdinov and Mnih,
    NIPS 2007).

    Parameters
    ----------
    values : Floats
        The matrix; unknown entries may have any value.
    known : Flags
        Which entries are known, in the shape of ``values``.
    rank : int
        Columns of the factors; 10 in Gavel.
    penalty : float
        Weight of the squared entries of the factors; 0.01 in Gavel.
    seed : int
        Seed of the random start.

    Examples
    --------
    >>> values = np.outer([1.0, 0.5], [0.8, 0.4])
    >>> known = np.array([[True, True], [True, False]])
    >>> complete(values, known, rank=1, penalty=1e-6)[1, 1].round(3)
    np.float64(0.2)
    """
    rng = np.random.default_rng(seed)
    left, right = (rng.standard_normal((size, rank)) for size in values.shape)
    row_patterns = _patterns(known)
    column_patterns = _patterns(known.T)
    target = np.where(known, values, 0.0)
    ridge = penalty * np.eye(rank)
    product = left @ right.T
    for _ in range(_SWEEPS):
        left = _fit(right, row_patterns, target, ridge)
        right = _fit(left, column_patterns, target.T, ridge)
        old_product = product
        product = left @ right.T
        if np.sqrt(((product - old_product) ** 2).mean()) < _STOP:
            break
    return np.where(known, values, product)


def _patterns(known: Flags) -> list[tuple[Ints, Ints]]:
    """Sets of columns, each with the rows in which exactly these columns are known."""
    patterns, pattern_of_row = np.unique(known, axis=0, return_inverse=True)
    return [
        (np.flatnonzero(pattern), np.flatnonzero(pattern_of_row == number))
        for number, pattern in enumerate(patterns)
    ]


def _fit(
    factor: Floats, patterns: list[tuple[Ints, Ints]], target: Floats, ridge: Floats
) -> Floats:
    """Factor whose product with ``factor`` fits ``target`` best, by ridge regression, (rows, rank).

    Rows with the same known columns have the same matrix of the regression.
    """
    fitted: Floats = target @ factor
    for columns, rows in patterns:
        basis = factor.take(columns, axis=0)
        fitted[rows] = np.linalg.solve(basis.T @ basis + ridge, fitted.take(rows, axis=0).T).T
    return fitted


# The random stream of profiling depends on the seed alone. So runs of one seed at several loads
# measure the same entries of the same jobs. Arrays are passed as bytes, which a cache can look up.
@functools.lru_cache(maxsize=2**14)
def _completed_row(measured: bytes, row: bytes, profiled: bytes) -> bytes:
    """Row of a new job, its unknown entries completed (0 to 1) from the rows ``measured``."""
    known_entries = np.frombuffer(profiled, dtype=np.bool_)
    size = len(known_entries)
    values = np.vstack([np.frombuffer(measured).reshape(-1, size), np.frombuffer(row)])
    known = np.ones(values.shape, dtype=np.bool_)
    known[-1] = known_entries
    completed = np.clip(complete(values, known)[-1], 0.0, 1.0)
    filled: Floats = np.where(known_entries, values[-1], completed)
    return filled.tobytes()


def retained_fractions(
    table: ThroughputTable, models: Sequence[str], gpu_types: Sequence[str]
) -> Floats:
    """Fraction of its throughput that a model retains, at [model, GPU type, partner].

    0: the pair cannot share a GPU of the type.

    Parameters
    ----------
    table : ThroughputTable
        Throughputs of models and of pairs on one GPU.
    models : sequence of str
        Models, which are also the partners.
    gpu_types : sequence of str
        GPU types.

    Examples
    --------
    >>> rows = {("a", 1): {"k80": 10.0}, ("b", 1): {"k80": 4.0}}
    >>> table = ThroughputTable(rows, "k80", {("a", "b", 1): {"k80": (6.0, 3.0)}})
    >>> retained_fractions(table, ["a", "b"], ["k80"])[:, 0].tolist()
    [[0.0, 0.6], [0.75, 0.0]]
    """
    retained = np.zeros((len(models), len(gpu_types), len(models)))
    alone = _alone(table, models, gpu_types)
    for row, model in enumerate(models):
        can_run = alone[row] > 0
        for column, partner in enumerate(models):
            together = table.pair_speeds(model, 1, partner, 1, gpu_types)[0]
            retained[row, can_run, column] = np.minimum(
                1.0, together[can_run] / alone[row, can_run]
            )
    return retained


def _alone(table: ThroughputTable, models: Sequence[str], gpu_types: Sequence[str]) -> Floats:
    """Throughput (steps/s) on one GPU, shape (models, GPU types)."""
    rows = [table.rows[model, 1] for model in models]
    return np.array([[row.get(gpu_type, 0.0) for gpu_type in gpu_types] for row in rows])


class PairEstimator:
    """Estimates throughputs of pairs of which only some were profiled (Gavel, section 6).

    A random part of the entries of a new job's row is measured. The job is then matched with the
    nearest reference model. In a pair, two jobs retain the fractions that their reference models
    retain. Throughputs of jobs alone are known. The throughputs of a pair are known on the GPU
    types on which the pair has run.

    Parameters
    ----------
    table : ThroughputTable
        True throughputs.
    gpu_types : sequence of str
        GPU types.
    fraction : float
        Probability (0 to 1) that an entry (GPU type, reference model) is measured for a new job.
    references : int
        Number of reference models.
    seed : int
        Seed of the run.
    artifact_index : bool
        False: measurement n of a new job is entry n of its row over the reference models. True, as
        in the artifact: it is entry n of its row over all models, which in general belongs to
        another GPU type or partner.
    models : sequence of str, optional
        Models from which the reference models are sampled. Default: the models of the table. The
        artifact has the models of its workload generator, in their order.
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
        self._artifact_index = artifact_index
        self._row_of_model = {model: row for row, model in enumerate(models)}
        self._column_of_type = {gpu_type: column for column, gpu_type in enumerate(gpu_types)}
        self._rng = random.Random(seed + STREAM)
        reference_rows = sorted(self._rng.sample(range(len(models)), references))
        #: names of the reference models
        self.references = tuple(models[row] for row in reference_rows)
        self._reference_rows = reference_rows
        self._alone = _alone(table, models, gpu_types)
        self._true = retained_fractions(table, models, gpu_types)
        #: rows of the reference models in R, shape (references, GPU types * references)
        self._measured = self._true[reference_rows][:, :, reference_rows].reshape(references, -1)
        self._measured_bytes = self._measured.tobytes()
        self._norms = np.linalg.norm(self._measured, axis=1)
        self._matches: dict[Hashable, Match] = {}
        #: GPU types on which a pair has run
        self._types_run: dict[frozenset[Match], Flags] = {}

    def match(self, job: Hashable, model: str) -> Match:
        """Model of a job and the reference model that it resembles. A new job is profiled."""
        if job not in self._matches:
            if model not in self._row_of_model:
                raise ParamError(
                    f"job {job!r}: the throughput table has no pairs of model {model!r}; "
                    f"it has {', '.join(self._row_of_model)}"
                )
            nearest = self._nearest(self._row_of_model[model])
            if nearest is None:
                nearest = self._rng.choice(self.references)
            self._matches[job] = (model, nearest)
        return self._matches[job]

    def pair_speeds(self, first: Match, second: Match) -> Floats:
        """Throughputs (steps/s) of both jobs on the same GPU, shape (2, GPU types)."""
        speeds: Floats = self.pairs_with([first], second)[0]
        return speeds

    def pairs_with(self, firsts: Sequence[Match], second: Match) -> Floats:
        """Throughputs (steps/s) of both jobs, for each of ``firsts`` with ``second`` on one GPU.

        The shape is (firsts, 2, GPU types). As in `pair_speeds`, the job of ``firsts`` comes first.
        """
        first_rows = self._rows(firsts)
        second_rows = self._rows([second])
        never_run = np.zeros(len(self._column_of_type), dtype=np.bool_)
        types_run = np.array(
            [self._types_run.get(frozenset((first, second)), never_run) for first in firsts]
        )
        first_speeds = self._speeds(first_rows, second_rows, types_run)
        second_speeds = self._speeds(second_rows, first_rows, types_run)
        return np.stack([first_speeds, second_speeds], axis=1)

    def observe(self, first: Match, second: Match, gpu_type: str | None = None) -> None:
        """Record that jobs of these matches ran together on a GPU type; None: on all types.

        From then on their throughputs on this type are known.
        """
        types_run = self._types_run.setdefault(
            frozenset((first, second)), np.zeros(len(self._column_of_type), dtype=np.bool_)
        )
        types_run[slice(None) if gpu_type is None else self._column_of_type[gpu_type]] = True

    def _rows(self, matches: Sequence[Match]) -> Ints:
        """Rows of the jobs' models and of their reference models, shape (2, matches)."""
        row = self._row_of_model
        return np.array([[row[model], row[reference]] for model, reference in matches]).T

    def _speeds(self, jobs: Ints, partners: Ints, types_run: Flags) -> Floats:
        """Throughput (steps/s) of jobs next to partners, shape (jobs, GPU types), see `_rows`."""
        model_rows, reference_rows = jobs
        partner_model_rows, partner_reference_rows = partners
        true = self._true[model_rows, :, partner_model_rows]
        estimated = self._true[reference_rows, :, partner_reference_rows]
        speeds: Floats = self._alone[model_rows] * np.where(types_run, true, estimated)
        return speeds

    def _nearest(self, model_row: int) -> str | None:
        """Profile a job, and find the nearest reference model. None if its completed row is 0."""
        if self._fraction == 0:
            return None
        size = self._measured.shape[1]
        profiled = np.array([self._rng.uniform(0, 1) <= self._fraction for _ in range(size)])
        true_row = self._true[model_row]
        if self._artifact_index:
            measurements = true_row.ravel()[:size]
        else:
            measurements = true_row[:, self._reference_rows].ravel()
        completed = np.where(profiled, measurements, 0.0)
        if not profiled.all():
            row = _completed_row(self._measured_bytes, completed.tobytes(), profiled.tobytes())
            completed = np.frombuffer(row)
        norm = np.linalg.norm(completed)
        if not norm > 0:
            return None
        norms = np.maximum(self._norms * norm, 1e-300)
        distances = 1 - self._measured @ completed / norms
        return self.references[int(np.argmin(distances))]
