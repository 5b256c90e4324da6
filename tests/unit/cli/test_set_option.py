"""`--set K=V`: names that have separate options, and names that are given twice."""

import re

import pytest

from repro.base.errors import ParamError
from repro.cli import main
from repro.cli.settings import parse_settings

JOBS = "job_id,submit_time,duration,num_gpus\n0,0,100,1\n1,1,10,1\n"
ON_CLUSTER = ("--cluster", "1x1")


@pytest.fixture
def refused(tmp_path, capsys):
    """Error line of a command on a file of jobs, which wrote nothing."""
    jobs = tmp_path / "jobs.csv"
    jobs.write_text(JOBS)
    out = tmp_path / "out.csv"

    def call(*words):
        named = {"JOBS": str(jobs), "OUT": str(out)}
        assert main([named.get(word, word) for word in words]) == 2
        shown = capsys.readouterr()
        assert shown.out == "" and shown.err.count("\n") == 1 and not out.exists()
        return shown.err

    return call


@pytest.mark.parametrize(
    "command",
    [
        ("trace", "info", "JOBS"),
        ("trace", "convert", "JOBS", "--out", "OUT"),
        ("trace", "dress", "JOBS", "--out", "OUT"),
        ("trace", "doctor", "JOBS", *ON_CLUSTER),
        ("compare", "--trace", "JOBS", *ON_CLUSTER, "--policies", "srtf"),
        ("front", "--trace", "JOBS", *ON_CLUSTER, "--prefer", "jct=avg"),
    ],
)
@pytest.mark.parametrize(
    ("pair", "option"),
    [
        ("format=swf", "--format"),
        ("drop_bad_rows=1", "--drop-bad-rows"),
        ("cluster_gpus=8", "--cluster"),
        ("path=3", "(--trace|the argument FILE[|]NAME)"),
    ],
)
def test_an_argument_of_a_reader_has_an_option_of_its_own(refused, command, pair, option):
    line = refused(*command, "--set", pair)
    assert re.search(f"--set {pair}: use {option}", line), line


@pytest.mark.parametrize(
    ("pair", "option"), [("seed=3", "--seed"), ("rng=3", "--seed"), ("name=x", "--trace")]
)
def test_an_argument_of_a_generator_has_an_option_of_its_own(refused, pair, option):
    command = ("compare", "--trace", "testbed", *ON_CLUSTER, "--policies", "srtf")
    assert f"--set {pair}: use {option} instead" in refused(*command, "--seeds", "2", "--set", pair)


@pytest.mark.parametrize(
    "command",
    [
        ("trace", "info", "JOBS"),
        ("simulate", "--trace", "JOBS", *ON_CLUSTER, "--policy", "tiresias-l"),
        ("compare", "--trace", "JOBS", *ON_CLUSTER, "--policies", "srtf"),
    ],
)
def test_a_name_is_set_once(refused, command):
    line = refused(*command, "--set", "promote_knob=1", "--set", "promote_knob=2")
    assert "--set promote_knob=2: promote_knob has a value already; give one" in line


def test_a_repeated_name_is_refused_with_blanks_too():
    with pytest.raises(ParamError, match="has a value already"):
        parse_settings(["a=1", " a =1"])
