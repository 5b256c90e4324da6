"""The ledger of the round mechanism: time received, deficits from X to X, pairs that return."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.engine.rounds.mechanism import Ledger


def rows(*entries):
    """Members of rows: jobs alone and pairs."""
    members = [entry if isinstance(entry, tuple) else (entry, -1) for entry in entries]
    return np.array(members, dtype=np.int64).reshape(-1, 2)


def renew(ledger, members, x, elapsed):
    x = np.array(x, dtype=float).reshape(len(members), -1)
    ledger.replace_x(members, x, np.ones((len(x), 2, x.shape[1])), elapsed)


@pytest.fixture
def ledger():
    return Ledger(jobs=4, types=1, prior_s=180.0)


def test_new_rows_begin_with_the_prior_and_no_deficit(ledger):
    renew(ledger, rows(0, 1), [0.5, 0.25], 0.0)
    assert ledger.rows.received.tolist() == [[180.0], [180.0]]
    assert ledger.rows.total_received.tolist() == [360.0]
    assert ledger.rows.deficit.tolist() == [[0.0], [0.0]]


def test_time_received_counts_for_the_row_and_the_type(ledger):
    renew(ledger, rows(0, 1, 2), [0.5, 0.25, 0.25], 0.0)
    ledger.add_received(np.array([0, 2]), np.array([0, 0]), np.array([360.0, 100.0]))
    assert ledger.rows.received[:, 0].tolist() == [540.0, 180.0, 280.0]
    assert ledger.rows.total_received.tolist() == [3 * 180.0 + 460.0]


def test_deficits_are_carried_over(ledger):
    renew(ledger, rows(0, 1), [0.75, 0.25], 0.0)
    ledger.add_received(np.array([0]), np.array([0]), 360.0)
    renew(ledger, rows(1, 0), [0.5, 0.5], 720.0)
    # owed X * 720 s; job 0 received 360 s, job 1 nothing
    assert ledger.rows.deficit[:, 0].tolist() == [0.25 * 720, 0.75 * 720 - 360]
    assert ledger.rows.received[:, 0].tolist() == [180.0, 180.0]
    ledger.add_received(np.array([0]), np.array([0]), 360.0)
    renew(ledger, rows(0, 1), [0.5, 0.5], 360.0)
    assert ledger.rows.deficit[:, 0].tolist() == [180 + 180, 180 + 180 - 360]


def test_a_job_without_a_row_keeps_its_deficit(ledger):
    renew(ledger, rows(0, 1), [0.5, 0.5], 0.0)
    renew(ledger, rows(1), [1.0], 100.0)
    renew(ledger, rows(0, 1), [0.5, 0.5], 100.0)
    assert ledger.rows.deficit[:, 0].tolist() == [50.0, 50.0 + 100.0]


def test_pairs_have_deficits_of_their_own(ledger):
    renew(ledger, rows(0, 1, (0, 1)), [0.0, 0.0, 0.5], 0.0)
    renew(ledger, rows((1, 0), 0), [0.5, 0.0], 100.0)
    # the order of the members does not matter, and a new pair begins with half a round
    assert ledger.rows.deficit[:, 0].tolist() == [180.0 + 50.0, 0.0]
    renew(ledger, rows((1, 2), (0, 1)), [0.5, 0.5], 100.0)
    assert ledger.rows.deficit[:, 0].tolist() == [180.0, 180.0 + 100.0]


def test_a_pair_that_left_begins_anew(ledger):
    renew(ledger, rows((0, 1)), [0.5], 0.0)
    renew(ledger, rows(0, 1), [0.5, 0.5], 100.0)
    renew(ledger, rows((0, 1), 0), [0.5, 0.5], 100.0)
    assert ledger.rows.deficit[:, 0].tolist() == [0.0, 50.0]
    renew(ledger, rows((0, 2), (0, 1)), [0.5, 0.5], 100.0)
    assert ledger.rows.deficit[:, 0].tolist() == [180.0, 50.0]


def test_arrivals_have_no_share_until_x_is_new(ledger):
    renew(ledger, rows(0), [1.0], 0.0)
    ledger.add(rows(2, 3, (2, 3)), np.array([[[1.0], [1.0]], [[1.0], [1.0]], [[1.0], [0.0]]]))
    assert ledger.rows.members.tolist() == [[0, -1], [2, -1], [3, -1], [2, 3]]
    assert ledger.rows.x[:, 0].tolist() == [1.0, 0.0, 0.0, 0.0]
    assert ledger.rows.allocated.tolist() == [True, False, False, False]
    assert ledger.rows.runnable[:, 0].tolist() == [True, True, True, False]
    assert ledger.rows.received[:, 0].tolist() == [180.0] * 4
    assert ledger.rows.deficit[:, 0].tolist() == [0.0] * 4
    assert ledger.rows.throughputs.shape == (4, 2, 1)
    # the total counts the jobs that X was made for
    assert ledger.rows.total_received.tolist() == [180.0]
    renew(ledger, rows(0, 2, 3), [0.4, 0.3, 0.3], 100.0)
    assert ledger.rows.allocated.all()


def test_a_finished_job_takes_its_pairs_along(ledger):
    renew(ledger, rows(0, 1, 2, (0, 1), (1, 2), (0, 2)), [0.1] * 6, 0.0)
    ledger.finish(1)
    assert ledger.rows.runnable[:, 0].tolist() == [True, False, True, False, False, True]


@given(data=st.data())
@settings(max_examples=60)
def test_deficits_add_up(data):
    """The deficit is X times the elapsed time less the time received, summed over all X."""
    jobs = 3
    types = 2
    renewals = data.draw(st.integers(1, 5))
    ledger = Ledger(jobs, types, 180.0)
    expected = np.zeros((jobs, types))
    previous = np.zeros((jobs, types))
    elapsed = 0.0
    for _ in range(renewals):
        x = np.array(data.draw(st.lists(st.integers(0, 4), min_size=6, max_size=6))) / 8
        renew(ledger, rows(*range(jobs)), x, elapsed)
        expected += previous * elapsed
        np.testing.assert_allclose(ledger.rows.deficit, expected, atol=1e-9)
        previous = x.reshape(jobs, types)
        elapsed = 360.0 * data.draw(st.integers(0, 5))
        row = data.draw(st.integers(0, 2))
        column = data.draw(st.integers(0, 1))
        ledger.add_received(np.array([row]), np.array([column]), 360.0)
        expected[row, column] -= 360.0


@given(data=st.data())
@settings(max_examples=60)
def test_deficits_of_pairs_add_up_in_any_order(data):
    """A pair keeps its deficit while it stays in X, and loses it with its row.

    In the first X of one of its jobs it has a deficit of half a round.
    """
    entries = [0, 1, 2, 3, (0, 1), (0, 2), (1, 2), (2, 3), (1, 3)]
    ledger = Ledger(4, 1, 180.0)
    deficits = {}
    x = {}
    elapsed = 0.0
    allocated = set()
    for _ in range(data.draw(st.integers(1, 5))):
        chosen = data.draw(st.lists(st.sampled_from(entries), min_size=1, unique=True))
        entries_in_x = [
            entry[::-1] if isinstance(entry, tuple) and data.draw(st.booleans()) else entry
            for entry in chosen
        ]
        shares = [data.draw(st.integers(0, 4)) / 8 for _ in chosen]
        renew(ledger, rows(*entries_in_x), shares, elapsed)
        updated = {entry: deficits[entry] + x[entry] * elapsed for entry in x}
        new_pairs = {
            e: 180.0 for e in chosen if isinstance(e, tuple) and not allocated.issuperset(e)
        }
        allocated |= {job for e in chosen for job in (e if isinstance(e, tuple) else (e,))}
        deficits = {e: updated.get(e, new_pairs.get(e, 0.0)) for e in chosen} | {
            entry: updated.get(entry, deficits.get(entry, 0.0)) for entry in range(4)
        }
        np.testing.assert_allclose(ledger.rows.deficit[:, 0], [deficits[entry] for entry in chosen])
        x = dict(zip(chosen, shares, strict=True))
        elapsed = 360.0 * data.draw(st.integers(0, 5))
