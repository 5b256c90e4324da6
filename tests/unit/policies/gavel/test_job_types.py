"""Jobs of one run by type: numbers asked for once, speeds by kind."""

from __future__ import annotations

import numpy as np

from repro.policies.gavel._job_types import Asked, JobTypes


def test_a_number_is_asked_for_once():
    calls = []

    def ask(job):
        calls.append(job)
        return job / 2

    asked = Asked(ask)
    assert asked([4, 2]).tolist() == [2.0, 1.0]
    assert asked([2, 300, 4, 7]).tolist() == [1.0, 150.0, 2.0, 3.5]
    assert asked([]).tolist() == []
    assert calls == [4, 2, 300, 7]


def test_types_apart_are_those_of_the_jobs():
    types = JobTypes(lambda job: "abc"[job % 3])
    keys, counts, row = types.group([5, 3, 8], apart=True)
    assert keys == ["c", "a", "c"]
    assert counts.tolist() == [1, 1, 1]
    keys, counts, row = types.group([5, 3, 8])
    assert (keys, counts.tolist(), row.tolist()) == (["a", "c"], [1, 2], [1, 0, 1])
    np.testing.assert_array_equal(types.numbers([8, 3]), [0, 1])
