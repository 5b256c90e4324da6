"""Sweeps: what the key of a case counts, and the jobs that are measured."""

import shutil

import pytest

from repro.base import paths
from repro.base.errors import ParamError
from repro.figures import sweep
from repro.testing import small_trace

#: Tables of the checkout, taken before a test replaces their folder.
MEASURED = paths.traces_dir() / "measured"


def digest(**settings):
    """Cache key of a small run."""
    return sweep.digests([sweep.Case(small_trace(), "1x4", "srtf", settings=settings).resolved()])


def slower_pauses(folder):
    """Multiply the seconds of pause.csv's first row by 10."""
    table = folder / "pause.csv"
    header, first, *rows = table.read_text().splitlines()
    column = header.split(",").index("exit_s")
    values = first.split(",")
    values[column] = str(10 * float(values[column]))
    table.write_text("\n".join([header, ",".join(values), *rows]) + "\n")


@pytest.mark.parametrize("setting", ["overhead", "perf"])
@pytest.mark.parametrize("name", ["folder", "h100"])
def test_the_contents_of_a_measured_folder_count(tmp_path, monkeypatch, setting, name):
    folder = tmp_path / "traces" / "measured"
    shutil.copytree(MEASURED, folder)
    shutil.copy(MEASURED.parent / "registry.csv", folder.parent)
    monkeypatch.setattr(paths, "traces_dir", lambda: folder.parent)
    source = str(folder) if name == "folder" else name
    before = digest(**{setting: source})
    plain = digest(), digest(overhead="tiresias"), digest(overhead=30.0)
    assert digest(**{setting: source}) == before
    slower_pauses(folder)
    assert digest(**{setting: source}) != before
    assert (digest(), digest(overhead="tiresias"), digest(overhead=30.0)) == plain


def test_folders_of_several_gpu_types_count_too(tmp_path):
    shutil.copytree(MEASURED, tmp_path / "h100")
    before = digest(perf=f"{tmp_path}:mps")
    slower_pauses(tmp_path / "h100")
    assert digest(perf=f"{tmp_path}:mps") != before


@pytest.mark.parametrize("first_label", [0, 10])
def test_measured_jobs_are_counted_in_the_order_of_the_trace(first_label):
    trace = small_trace().iloc[::-1].assign(mark=lambda frame: frame["job_id"] * 10)
    trace.index = [first_label + label for label in trace.index]
    case = sweep.Case(trace, "1x4", "srtf", measure=sweep.MeasuredJobs(2))
    jobs = sweep.outcome(case.resolved()).jobs
    assert jobs["job_id"].tolist() == [3, 2, 1, 0]
    assert jobs["mark"].tolist() == [30, 20, 10, 0]
    assert jobs.index.tolist() == [0, 1, 2, 3]
    every = sweep.keep_all_records(case).jobs.set_index("job_id")
    assert jobs["end_time"].tolist() == every.loc[[3, 2, 1, 0], "end_time"].tolist()


def test_a_last_measured_job_asks_for_the_rate_of_arrivals():
    case = sweep.Case(small_trace(), "1x4", "srtf", measure=sweep.MeasuredJobs(0, 3))
    with pytest.raises(ParamError, match="needs the trace option rate"):
        sweep.outcome(case.resolved())


def test_rules_pcs_get_no_throughput_table_of_the_trace():
    trace = small_trace().assign(model="vgg16")
    trace.attrs |= {"throughputs": str(MEASURED), "reference_gpu": "h100"}
    cluster = "1x4:h100"
    assert sweep.Case(trace, cluster, "srtf").resolved().settings["perf"] is not None
    assert "perf" not in sweep.Case(trace, cluster, "pcs", rules="pcs").resolved().settings


@pytest.mark.parametrize("workers", [0, -2, 1.5, "2", True])
def test_a_wrong_number_of_processes_is_refused(workers):
    with pytest.raises(ParamError, match=f"workers is {workers!r}; give 1 or more processes"):
        sweep.run([], workers)
