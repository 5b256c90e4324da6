"""Generators by name: options, determinism, provenance, stand-ins."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base import paths
from repro.base.errors import DataMissingError, ParamError, TraceError
from repro.files import public, tables
from repro.trace import schema, synth

SMALL = {
    "testbed": {"jobs": 60},
    "elasticflow-like": {"jobs": 200, "cluster": 2},
    "philly-like": {"jobs": 500},
    "philly-gpu-time": {"jobs": 500},
    "muri-like": {"jobs": 200, "trace": "1"},
    "pcs-like": {"jobs": 200, "workload": "workload_6c71a0"},
    "pcs-workload": {"jobs": 200, "workload": "themis1"},
    "liquid-batch-jobs": {"jobs": 24, "gap_s": 30.0},
    "lognormal": {"jobs": 200, "sigma": 2.0, "wide": 0.2},
    "mm": {"jobs": 100, "num_gpus": 3},
    "mg1": {"jobs": 100, "service": "hyperexponential"},
    "gavel-single": {"jobs": 100, "throughputs": "gavel-like-throughputs"},
    "gavel-multiple": {"jobs": 100, "throughputs": "gavel-like-throughputs", "slos": True},
    "gavel-static": {"jobs": 100, "throughputs": "gavel-like-throughputs", "priorities": True},
    "gavel-physical": {"jobs": 100, "throughputs": "gavel-like-throughputs"},
}


@pytest.fixture(scope="module", autouse=True)
def _no_network():
    def refuse(url, path):
        raise OSError("no network in tests")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(public, "_retrieve", refuse)
        yield


@pytest.mark.parametrize("name", ["mm", "gavel-single"])
@pytest.mark.parametrize("rng", [-1, None, "0", 0.5, True])
def test_randomness_is_a_generator_or_a_seed(name, rng):
    message = "give a numpy generator, or a whole number of 0 or more"
    with pytest.raises(ParamError, match=message):
        synth.make(name, rng, jobs=10)


def test_every_generator_is_covered():
    assert list(synth.generators) == sorted(SMALL)


@pytest.mark.parametrize("name", SMALL)
def test_a_draw_is_a_valid_trace_from_time_zero(name):
    frame = synth.make(name, np.random.default_rng(0), **SMALL[name])
    pd.testing.assert_frame_equal(schema.validate(frame, name), frame)
    assert frame["submit_time"].iloc[0] == 0
    assert frame["job_id"].tolist() == list(range(len(frame)))
    assert frame.attrs["name"] == name
    assert frame.attrs["synthetic"] is True
    assert SMALL[name].items() <= frame.attrs["options"].items()


@pytest.mark.parametrize("name", SMALL)
def test_the_same_state_gives_the_same_trace(name):
    draws = [synth.make(name, np.random.default_rng(seed), **SMALL[name]) for seed in (5, 5, 6)]
    pd.testing.assert_frame_equal(draws[0], draws[1])
    assert not draws[0].equals(draws[2])


@pytest.mark.filterwarnings("ignore::repro.base.errors.StandInWarning")
@settings(max_examples=25)
@given(st.sampled_from(sorted(SMALL)), st.integers(1, 700), st.integers(0, 2**32))
def test_any_number_of_jobs(name, jobs, seed):
    load = "load" in synth.make(name, np.random.default_rng(0), jobs=2).attrs["options"]
    single = jobs == 1 and load and name == "philly-gpu-time"
    if single:
        with pytest.raises(ParamError, match="submitted at once"):
            synth.make(name, np.random.default_rng(seed), jobs=1)
        return
    frame = schema.validate(synth.make(name, np.random.default_rng(seed), jobs=jobs))
    assert len(frame) == jobs


def test_unknown_names_and_options():
    rng = np.random.default_rng(0)
    with pytest.raises(ParamError, match="unknown generator 'testbet'; did you mean 'testbed'"):
        synth.make("testbet", rng)
    with pytest.raises(ParamError, match=r"no option 'job'; .* \(accepted: jobs, gaps, mean_"):
        synth.make("testbed", rng, job=3, gap=2)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("testbed", {"jobs": 0}),
        ("testbed", {"jobs": 2.5}),
        ("testbed", {"jobs": True}),
        ("testbed", {"gaps": "uniform"}),
        ("testbed", {"mean_gap": -1}),
        ("philly-like", {"jobs": -1}),
        ("philly-like", {"load": 0.5}),
        ("philly-like", {"num_gpus": 8, "load": float("inf")}),
        ("philly-like", {"num_gpus": "8"}),
        ("philly-like", {"min_duration": float("nan")}),
        ("philly-like", {"min_duration": 1e9}),
        ("philly-gpu-time", {"load": 0}),
        ("mm", {"num_gpus": 0}),
        ("pcs-workload", {"jobs": 0}),
        ("pcs-workload", {"num_gpus": 1.5}),
        ("pcs-workload", {"load": -1}),
        ("pcs-workload", {"workload": "workload_ee9e8c", "load": 0.5}),
        ("pcs-workload", {"workload": "tiresias"}),
        ("pcs-like", {"jobs": 0}),
        ("pcs-like", {"workload": "gavel"}),
        ("pcs-like", {"workload": "0e4a51"}),
        ("gavel-single", {"rate": 0}),
        ("gavel-multiple", {"jobs": 0}),
        ("gavel-static", {"priorities": 1}),
        ("gavel-static", {"fixed_duration": -1}),
        ("gavel-static", {"job_table": "old"}),
        ("gavel-physical", {"rate": -1}),
        ("gavel-physical", {"max_hours": 0.5}),
        ("gavel-physical", {"large_batches": "yes"}),
        ("mg1", {"service": "pareto"}),
        ("mg1", {"service": "hyperexponential", "scv": 1}),
    ],
)
def test_values_that_are_refused(name, options):
    with pytest.raises(ParamError, match=f"{list(options)[-1]}="):
        synth.make(name, np.random.default_rng(0), **options)


def test_stand_ins_follow_the_format_of_the_public_file():
    held = {item.name: synth.stand_in_for(item.name)[0] for item in public.entries().values()}
    assert held["philly"] == "philly-like"
    assert held["pcs-0e4a51"] == "pcs-like"
    assert held["pcs-themis1"] == "pcs-workload"
    assert held["muri-trace4"] == "muri-like"
    assert {held[f"tiresias-history-{n}"] for n in (1000, 5000, 10000)} == {"gpu-time-quantiles"}
    assert held["gavel-throughputs"] == "gavel-like-throughputs"
    assert held["gavel-max-min-fairness"] == held["gavel-minimize-makespan"] == "gavel-physical"
    assert held["tiresias-60"] == "testbed"
    assert held["pcs-toy"] is held["muri-n8g8"] is held["gavel-msr-0e4a51"] is None
    assert synth.stand_in_for("no such trace") == (None, {})


def _texts(value):
    """Return all texts in what a parameter file holds."""
    if isinstance(value, dict):
        return [text for one in value.values() for text in _texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []


def test_every_public_file_that_a_figure_names_has_a_stand_in():
    files = sorted(paths.params_dir().rglob("*.yaml"))
    named = {
        (file.stem, text)
        for file in files
        for text in _texts(yaml.safe_load(file.read_text()))
        if public.is_known(text)
    }
    assert len(named) > 50
    assert {one for one in named if synth.stand_in_for(one[1])[0] is None} == set()


def test_missing_and_damaged_tables_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(tables.paths, "traces_dir", lambda: tmp_path)
    tables._read_table.cache_clear()
    with pytest.raises(DataMissingError, match=r"philly_hours.csv: .* missing; restore it"):
        synth.make("philly-like", np.random.default_rng(0))
    (tmp_path / "philly_hours.csv").write_text("# source\nhour,jobs\n0,1\n")
    with pytest.raises(TraceError, match=r"philly_hours.csv: no column week, hour_of_week, probes"):
        synth.make("philly-like", np.random.default_rng(0))
    (tmp_path / "philly_hours.csv").write_text("")
    with pytest.raises(TraceError, match=r"philly_hours.csv: not a table"):
        synth.make("philly-like", np.random.default_rng(0))
    tables._read_table.cache_clear()
