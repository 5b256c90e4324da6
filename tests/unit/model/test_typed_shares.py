"""The base of share policies: kinds of jobs, and what a policy's formula is asked for."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest

from repro.base.errors import PolicyError
from repro.model.typed_shares import KindNumbers, Kinds, SolutionCache, TypedShares


def test_a_key_is_asked_for_once_per_job():
    calls = []

    def key(job):
        calls.append(job)
        return job % 3

    kind_numbers = KindNumbers(key)
    assert kind_numbers.numbers([4, 2]).tolist() == [0, 1]
    assert kind_numbers.numbers([2, 300, 4, 7]).tolist() == [1, 2, 0, 0]
    assert kind_numbers.numbers([]).tolist() == []
    assert calls == [4, 2, 300, 7]


@pytest.mark.parametrize("jobs", [[5, 3, 8], [8, 5, 3]])
def test_kinds_stand_in_an_order_of_their_own(jobs):
    kind_numbers = KindNumbers(lambda job: "abc"[job % 3])
    numbers, counts, row = kind_numbers.present(jobs)
    assert [kind_numbers.keys[number] for number in numbers] == ["a", "c"]
    assert (counts.tolist(), row.tolist()) == ([1, 2], [int(job != 3) for job in jobs])


def test_rows_of_equal_keys_are_merged():
    speeds = np.arange(6.0).reshape(3, 2)
    rows = Kinds(
        speeds,
        gpus=np.ones(2),
        counts=np.array([3.0, 1.0, 4.0]),
        widths=np.array([1.0, 2.0, 1.0]),
        weights=np.ones(3),
        jobs=(7, 8, 9),
    )
    kinds, row = rows.merged(["b", "a", "b"])
    assert (kinds.jobs, row.tolist()) == ([8, 7], [1, 0, 1])
    assert [kinds.key(0), kinds.name(1)] == ["a", "job kind b"]
    assert (kinds.counts.tolist(), kinds.widths.tolist()) == ([1, 7], [2, 1])
    assert kinds.speeds.tolist() == [[2, 3], [0, 1]]


def test_what_was_not_asked_for_longest_is_forgotten():
    solved = SolutionCache(2)
    asked = []

    def ask(number):
        return solved(np.array([number]), np.ones(1), lambda: asked.append(number) or number)

    assert [ask(number) for number in (1, 2, 1, 3, 1, 2)] == [1, 2, 1, 3, 1, 2]
    assert asked == [1, 2, 3, 2]


@dataclass(frozen=True)
class Equal(TypedShares):
    """Gives all the same time, and notes what it was asked."""

    needs: ClassVar[frozenset[str]] = frozenset({"throughput", "priority_weight"})
    asked: ClassVar[list] = []
    alone: bool = False
    rows: int = 0

    def jobs_are_kinds(self):
        return self.alone

    def shares(self, kinds):
        self.asked.append((kinds.counts.tolist(), kinds.weights.tolist(), kinds.widths.tolist()))
        return np.full((len(kinds.counts) + self.rows, len(kinds.gpus)), 0.25)


def view(models):
    return SimpleNamespace(
        jobs=list(range(len(models))),
        gpu_types=("k80", "v100"),
        gpu_counts=np.array([2.0, 2.0]),
        kind_codes=np.unique(models, return_inverse=True)[1],
        kind=lambda job: (models[job], 2),
        gpus=lambda job: 2,
        speeds=lambda job: np.array([1.0, 2.0]),
        column=lambda name, default: np.array([1.0, 1.0, 3.0])[: len(models)],
    )


def test_a_mix_is_solved_once_whatever_the_order_of_jobs():
    Equal.asked.clear()
    run = view(["b", "a", "b"])
    decide = Equal().session(run)
    assert decide(run).fractions.shape == (3, 2)
    run.jobs = [2, 0, 1]
    assert list(decide(run).jobs) == [2, 0, 1]
    # jobs of model b differ in weight
    assert Equal.asked == [([1, 1, 1], [1, 1, 3], [2, 2, 2])]


@dataclass(frozen=True)
class EqualByRow(Equal):
    """`Equal` with a weight for each job."""

    def weight(self, view):
        return lambda job: 1.0 + job


def test_a_weight_of_a_subclass_separates_kinds():
    Equal.asked.clear()
    run = view(["b", "a", "b"])
    EqualByRow().session(run)(run)
    ((counts, weights, _),) = Equal.asked
    assert (counts, sorted(weights)) == ([1, 1, 1], [1, 2, 3])
    run.column = lambda name, default: np.ones(3)
    Equal.asked.clear()
    EqualByRow().session(run)(run)
    assert Equal.asked[0][0] == [1, 1, 1]


def test_jobs_apart_stand_in_order_of_arrival_and_are_solved_anew():
    Equal.asked.clear()
    run = view(["b", "a", "b"])
    decide = Equal(alone=True).session(run)
    decide(run)
    decide(run)
    assert Equal.asked == [([1, 1, 1], [1, 1, 3], [2, 2, 2])] * 2


def test_shares_of_the_wrong_shape_are_refused():
    run = view(["b", "a", "b"])
    with pytest.raises(PolicyError, match=r"shape \(4, 2\); give one row per kind .* \(3, 2\)"):
        Equal(rows=1).session(run)(run)
    with pytest.raises(PolicyError, match="defines no `shares`"):
        TypedShares().shares(None)


def test_no_jobs_no_rows():
    run = view([])
    assert Equal().session(run)(run).fractions.shape == (0, 2)
