"""The tables in ``traces/``: measured again they come out the same; they hold no rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from repro.base import paths
from repro.base.errors import ReproError, TraceError
from repro.files import tables
from tools.calibrate import __main__ as measuring
from tools.calibrate import philly
from tools.calibrate.philly import probes


@pytest.mark.slow
def test_measuring_again_gives_the_committed_tables(mirror, monkeypatch, tmp_path):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    measuring.main(tmp_path)
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == sorted(f"{name}.csv" for name in tables.MEASURED)
    for name in written:
        assert (tmp_path / name).read_bytes() == (paths.traces_dir() / name).read_bytes(), name


def test_tables_name_their_source_and_stay_compact():
    sizes = []
    for name in tables.MEASURED:
        path = paths.traces_dir() / f"{name}.csv"
        sizes.append(path.stat().st_size)
        header = path.read_text(encoding="utf-8").splitlines()[0]
        assert header.startswith("# ")
        assert all(word in header for word in ("commit", "licence"))
        assert ".csv" in header or ".json" in header
        assert list(tables.measured(name))[: len(tables.MEASURED[name])] == list(
            tables.MEASURED[name]
        )
    assert sum(sizes) < 300_000


def test_probes_are_found_and_jobs_beside_them_are_not():
    beat = np.arange(20) * 600.0 + 90
    frame = pd.DataFrame({"submit_time": beat, "duration": 70.0, "num_gpus": 1, "vc": "a"})
    others = pd.DataFrame(
        {
            "submit_time": [91.0, 690.0, 1000.0, 1290.0],
            "duration": [70.0, 5000.0, 70.0, 70.0],
            "num_gpus": [1, 1, 1, 8],
            "vc": "a",
        }
    )
    every = pd.concat([frame, others, others.assign(vc="b")], ignore_index=True)
    every = every.sort_values("submit_time", kind="stable", ignore_index=True)
    found = every[probes(every)]
    assert len(found) == 20
    assert (found["submit_time"] == beat).all()


def test_a_trace_without_a_service_has_no_probes():
    jobs = pd.DataFrame({"submit_time": [0.0, 7.0], "duration": 9.0, "num_gpus": 1, "vc": "a"})
    assert not probes(jobs).any()


def test_clocks_of_files_follow_from_jobs_of_the_dated_file():
    late = philly.CLOCKS_BACK_S + 5000.0
    a = pd.DataFrame({"submit_time": [0.0, 50.0, late], "duration": [7.0, 8.0, 9.0], "num_gpus": 1})
    b = a.assign(num_gpus=2)
    # a starts at 1000 s and b at 400 s; late jobs are dated an hour earlier
    dated_a = a.assign(submit_time=[1000.0, 1050.0, late + 1000.0 - 3600.0], vc="a")
    dated_b = b.assign(submit_time=[400.0, 450.0, late + 400.0 - 3600.0], vc="b")
    other = dated_a.head(1).assign(duration=99.0, submit_time=5.0)
    table = philly.clocks(pd.concat([dated_a, dated_b, other]), {"a": a, "b": b})
    assert table["vc"].tolist() == ["a", "b"]
    assert table["start_s"].tolist() == [600.0, 0.0]
    assert table["jobs"].tolist() == [3, 3]
    assert table["matched"].tolist() == [3, 3]


def test_virtual_clusters_are_needed():
    jobs = pd.DataFrame({"submit_time": [0.0], "duration": [9.0], "num_gpus": [1]})
    with pytest.raises(TraceError, match="no column vc"):
        philly.calibrate(jobs)


def test_writing_is_atomic(tmp_path, monkeypatch):
    target = tmp_path / "t.csv"
    target.write_text("old")

    def full(*_):
        raise OSError(28, "full")

    monkeypatch.setattr("repro.files.whole.os.replace", full)
    with pytest.raises(ReproError, match="full"):
        measuring.write(pd.DataFrame({"a": [1]}), target, "made up")
    assert target.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
