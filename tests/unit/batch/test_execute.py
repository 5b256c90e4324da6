"""What a batch tells each of its notebooks."""

from pathlib import Path

import pytest

from repro.base.errors import ReproError
from repro.base.interpreted import ENV_SECONDS
from repro.batch import execute
from repro.batch.execute import _seconds_of_interpretation
from repro.batch.task import FAILED, Task
from repro.figures.params import FigureEntry


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


def test_a_full_disk_fails_a_figure_with_the_line_of_the_write(monkeypatch, tmp_path):
    line = "a.ipynb: cannot be written (No space left on device); check the path"

    def full(task):
        raise ReproError(line)

    monkeypatch.setattr(execute, "execute", full)
    task = Task(
        FigureEntry("tiresias/fig01_x", Path()), {"out": "", "profile": "quick"}, "", tmp_path
    )
    (outcome,) = execute.run([task], jobs=1)
    assert (outcome.status, outcome.error) == (FAILED, line)
