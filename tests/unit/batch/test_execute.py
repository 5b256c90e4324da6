"""What a batch tells each of its notebooks."""

import pytest

from repro.base.interpreted import ENV_SECONDS
from repro.batch.execute import _seconds_of_interpretation


@pytest.mark.parametrize(
    ("num_notebooks", "set_by_user", "seconds"),
    [
        (159, None, 0.3),
        (3, None, None),
        (159, "5", None),
    ],
)
def test_large_batches_interpret_loops_briefly_unless_the_user_has_a_say(
    monkeypatch, num_notebooks, set_by_user, seconds
):
    if set_by_user is None:
        monkeypatch.delenv(ENV_SECONDS, raising=False)
    else:
        monkeypatch.setenv(ENV_SECONDS, set_by_user)
    assert _seconds_of_interpretation(num_notebooks) == seconds
