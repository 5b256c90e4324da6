"""How far a notebook's simulations are, told by the kernel and read by the batch."""

import itertools
from dataclasses import replace

import pytest

from repro import figure
from repro.batch import kernel
from repro.batch.execute import progress_lines
from repro.batch.task import Task
from repro.figures.params import FigureEntry
from repro.figures.progress import ENV_PROGRESS
from repro.figures.sweep import Case
from repro.testing import small_trace


@pytest.fixture
def task(tmp_path):
    """A notebook with an existing scratch folder."""
    return Task(FigureEntry("gavel/fig08_las_single", tmp_path), {}, "", tmp_path)


@pytest.fixture
def sweep_of_two():
    return {jobs: Case(small_trace().head(jobs), "1x4", "srtf") for jobs in (1, 2)}


@pytest.fixture(autouse=True)
def empty_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))


def test_a_kernel_tells_its_points_in_the_file_that_the_batch_reads(
    task, sweep_of_two, monkeypatch
):
    environment = kernel._environment(task, task.progress_file.parent)
    monkeypatch.setenv(ENV_PROGRESS, environment[ENV_PROGRESS])
    news = progress_lines([task], every_s=0.0)
    assert next(news) == []
    figure("tiresias/alg01_priority").sweep(sweep_of_two, workers=1)
    assert next(news) == ["gavel/fig08_las_single 2/2 simulations"]
    assert next(news) == []


def test_each_simulation_of_a_figure_is_told(task, monkeypatch):
    monkeypatch.setenv(ENV_PROGRESS, str(task.progress_file))
    fig = figure("tiresias/alg01_priority")
    for done in ("1", "2"):
        fig.simulate(small_trace(), cluster="1x4", policy="srtf")
        assert task.simulations_done() == done


@pytest.mark.parametrize("place", [None, "gone/fig.points"])
def test_without_a_batch_on_this_machine_nothing_is_written(
    sweep_of_two, monkeypatch, tmp_path, place
):
    if place is None:
        monkeypatch.delenv(ENV_PROGRESS, raising=False)
    else:
        monkeypatch.setenv(ENV_PROGRESS, str(tmp_path / place))
    figure("tiresias/alg01_priority").sweep(sweep_of_two, workers=1)
    assert [path.name for path in tmp_path.iterdir()] == ["cache"]


def test_each_figure_is_told_of_at_most_once_in_ten_seconds(task, monkeypatch):
    clock = itertools.count(0, 4)
    now = 0.0
    monkeypatch.setattr("repro.batch.execute.time.monotonic", lambda: now)
    other = replace(task, entry=FigureEntry("gavel/fig12_scaling", task.entry.root))
    told = []
    news = progress_lines([task, other])
    for now in itertools.islice(clock, 8):
        task.progress_file.write_text(f"{now}/231")
        told.append(next(news))
    assert [bool(lines) for lines in told] == [False, False, False, True, False, False, True, False]
    assert told[3] == ["gavel/fig08_las_single 12/231 simulations"]
