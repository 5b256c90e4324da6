"""`repro run -p`, `repro check --variations` and `--require-data`."""

import json
import shutil
from pathlib import Path

import pytest

from repro.cli.run import _parameters
from repro.figures.claims import DATA_NOT_AVAILABLE
from repro.figures.data import STAND_IN

# left out by `make check`
pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
FIGURE = "tiresias/fig01_one"


def result_of(project):
    return (project.folder(FIGURE) / "result.json").read_bytes()


def test_a_run_with_other_parameters_is_a_variation(project):
    project.add(FIGURE)
    assert "no variations in" in project.cli("check", "--variations").stdout
    project.cli("run", FIGURE)
    before = result_of(project)
    shown = project.cli("run", FIGURE, "-p", "seeds", "[0, 1]").stdout
    base = project.root / "build" / "variations"
    assert f"{FIGURE}: variation, seeds 0, 1 instead of 0 (" in shown
    assert "verdicts" not in shown and "gallery" not in shown
    assert result_of(project) == before
    (path,) = base.rglob("result.json")
    line = f"variation, not judged: {path.parent}\n"
    assert shown.count(line) == 1
    result = json.loads(path.read_text())
    assert result["variation"] == {"seeds": [[0, 1], [0]]} and result["claims"] == []
    names = {file.name for file in path.parent.iterdir()}
    assert {"fig01_one.svg", "fig01_one.csv", "fig01_one.ipynb", "fig01_one.html"} <= names
    listed = project.cli("check", "--variations").stdout
    assert listed == f"{FIGURE}: seeds 0, 1 instead of 0 ({path.parent})\n"
    again = project.cli("run", FIGURE, "-p", "seeds", "[0, 1]").stdout
    assert "current" in again and again.count(line) == 1
    # the gallery and the verdicts are those of the figure
    assert "seeds" not in project.cli("check").stdout


def test_a_parameter_with_the_value_of_the_file_is_no_variation(project):
    project.add(FIGURE)
    shown = project.cli("run", FIGURE, "-p", "seeds", "[0]").stdout
    assert "variation" not in shown and "verdicts: 2 of 2 claims reproduced" in shown


def test_a_run_with_another_seed_leaves_the_figures_own_result(project):
    project.add(FIGURE)
    project.cli("run", FIGURE)
    before = result_of(project)
    shown = project.cli("run", FIGURE, "-p", "seed", "3").stdout
    assert f"{FIGURE}: variation, seed 3 instead of 0 (" in shown and "verdicts" not in shown
    (path,) = (project.root / "build" / "variations").rglob("result.json")
    assert f"variation, not judged: {path.parent}\n" in shown
    assert result_of(project) == before
    assert "1 of 1 figures are current" in project.cli("run", FIGURE, "-p", "seed", "3").stdout


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("-p", "seed", "x"), "seed is 'x'; give a whole number of 0 or more"),
        (("-p", "seed", "-1"), "seed is -1; give"),
        (("-p", "seed", "true"), "seed is True; give"),
        (("-p", "cluster", "2x4", "-p", "cluster=4x4"), "-p cluster: is given twice; a run"),
        (("-p", "cluster", ""), "-p cluster: is empty; give a value or leave it out"),
        (("-p", "cluster= "), "-p cluster: is empty"),
        (("-p", "cluster", "8"), "cluster is 8; give a text, such as 1x4"),
        (("-p", "cluster", "8y8"), "-p cluster: cluster spec: cannot read '8y8'; accepted: NODES"),
        (("-p", "cluster", "0x8"), "-p cluster: cluster spec"),
        (("-p", "seed", "0x8"), "seed is '0x8'; give a whole number"),
        (("-p", "seeds", "0x8"), "seeds is '0x8'; give a list of whole numbers"),
        (("-p", "seeds", "x"), "seeds is 'x'; give a list of whole numbers, such as [0, 1]"),
        (("-p", "format", "murri"), "-p format cannot be 'murri'; did you mean 'muri'"),
        (("-p", "format", "muri"), "-p format muri: no trace of this run is a file of yours"),
    ],
)
def test_a_wrong_parameter_is_one_line_before_the_notebook_starts(project, words, reason):
    names = ("seeds", "cluster", "format")
    defaults = "".join(f"{name} = None\n" for name in names)
    parameters = f'profile = "quick"\nseed = 0\nout = "build"\n{defaults}'
    project.add(FIGURE, parameters=parameters)
    ended = project.cli("run", FIGURE, *words, code=2)
    assert reason in ended.stderr and ended.stderr.count("\n") == 1 and ended.stdout == ""
    assert not (project.root / "build").exists()


def test_a_hexadecimal_number_stays_a_text():
    """YAML reads the number 8, which no cluster is; the message then named a value nobody gave."""
    assert _parameters(["cluster=0x8", "other= 0x1F "]) == {"cluster": "0x8", "other": "0x1F"}
    assert _parameters(["jobs=10"]) == {"jobs": 10}


def test_numbers_as_keys_are_labels(project):
    """papermill passes keys as texts, as JSON has them."""
    parameters = 'profile = "quick"\nseed = 0\nout = "build/figures"\nseeds = None\nlabels = None'
    project.add(FIGURE, parameters=parameters)
    for folder, suffix, old, new in (
        ("params", "yaml", "  seeds: [0, 1]", "  seeds: [0, 1]\n  labels: {'1': a, '2': b}"),
        ("notebooks", "ipynb", "seeds=seeds", "seeds=seeds, labels=labels"),
    ):
        file = project.root / folder / f"{FIGURE}.{suffix}"
        file.write_text(file.read_text().replace(old, new))
    shown = project.cli("run", FIGURE, "-p", "labels", "{1: c}").stdout
    assert f"{FIGURE}: variation, labels 1: c instead of 1: a, 2: b (" in shown
    assert "not judged" in shown


@pytest.mark.parametrize("seed", ["2 + 3", "None", '"5"', "True"])
def test_a_seed_that_is_no_whole_number_in_the_notebook_is_refused(project, seed):
    """A run with `-p seed` could not be told from the figure's own and would be judged."""
    parameters = f'profile = "quick"\nseed = {seed}\nout = "build"\nseeds = None\ncluster = None'
    project.add(FIGURE, parameters=parameters)
    ended = project.cli("run", FIGURE, "-p", "seed", "5", code=2)
    notebook = project.root / "notebooks" / f"{FIGURE}.ipynb"
    assert ended.stderr == (
        f"repro: {notebook}: the seed in the parameters cell is not written as a whole number; "
        f"write one, such as `seed = 0`\n"
    )
    assert not (project.root / "build").exists()


@pytest.mark.parametrize(
    "words",
    [
        ("--json",),
        ("--github",),
        ("--require-data",),
        ("--junit", "check.xml"),
        ("--save", "values.json"),
        ("--against", "figures"),
    ],
)
def test_a_list_of_variations_refuses_options_about_verdicts(project, words):
    project.add(FIGURE)
    ended = project.cli("check", "--variations", *words, code=2)
    assert ended.stderr == (
        f"repro: --variations lists runs without verdicts; leave out {words[0]}\n"
    )
    assert ended.stdout == ""


def test_variations_of_another_folder_are_below_it(project, tmp_path):
    project.add(FIGURE)
    out = tmp_path / "own"
    project.cli("run", FIGURE, "-p", "seeds=[1]", "--out", out)
    (path,) = out.rglob("result.json")
    assert path.parent.parent == out / "variations" / FIGURE
    assert str(path.parent) in project.cli("check", "--variations", "--out", out).stdout
    assert "no variations in" in project.cli("check", "--variations").stdout


def test_a_failed_variation_leaves_the_figure_alone(project):
    project.add(FIGURE, before="assert not seeds, 'no other seeds'")
    project.cli("run", FIGURE)
    before = result_of(project)
    shown = project.cli("run", FIGURE, "-p", "seeds", "[1]", code=1).stdout
    assert "AssertionError: no other seeds" in shown
    assert "verdicts" not in shown and "gallery" not in shown and "not judged" not in shown
    assert result_of(project) == before
    assert not (project.folder(FIGURE) / "error.json").exists()
    assert "no variations in" in project.cli("check", "--variations").stdout


@pytest.mark.parametrize(
    ("extra", "reason"),
    [
        ("aged.py", "extra: unknown policy 'aged.py'; "),
        ("tiresias-1", "extra: unknown policy 'tiresias-1'; did you mean 'tiresias-l'"),
        ("[srtf, las-2dd]", "extra: unknown policy 'las-2dd'; did you mean 'las-2d'"),
        ("{policy: las}", "extra: unknown policy 'las'; did you mean 'las-2d'"),
    ],
)
def test_an_unknown_extra_policy_stops_the_run_before_its_notebook(project, extra, reason):
    parameters = 'profile = "quick"\nseed = 0\nout = "build"\nseeds = None\nextra = None'
    project.add(FIGURE, parameters=parameters, before="open('started', 'w').close()")
    ended = project.cli("run", FIGURE, "-p", "extra", extra, code=2)
    assert ended.stdout == "" and ended.stderr.count("\n") == 1
    assert reason in ended.stderr
    assert ended.stderr.endswith(
        "; `repro new-policy NAME` writes a file of your own in repro/policies/own\n"
    )
    assert not list(project.root.rglob("started"))


def test_a_figure_without_a_list_of_policies_refuses_extra_before_its_notebook(project):
    parameters = 'profile = "quick"\nseed = 0\nout = "build"\nseeds = None\nextra = None'
    project.add(FIGURE, parameters=parameters, before="open('started', 'w').close()")
    ended = project.cli("run", FIGURE, "-p", "extra", "srtf", code=2)
    assert ended.stdout == "" and "extra: this figure has no list of policies" in ended.stderr
    assert not list(project.root.rglob("started"))


def lose_public_data(project, name="philly"):
    """Let the result say that a public file was replaced."""
    path = project.folder(FIGURE) / "result.json"
    result = json.loads(path.read_text())
    result["data"] = [{"name": name, "kind": STAND_IN, "sha256": None, "stand_in": True}]
    result["claims"][0] |= {"verdict": "not comparable", "reason": DATA_NOT_AVAILABLE}
    path.write_text(json.dumps(result))


def test_missing_public_data_is_named_and_exits_3_on_request(project):
    project.add(FIGURE)
    project.cli("run", FIGURE)
    project.cli("check", "--require-data")
    lose_public_data(project)
    line = "1 public file not available here (philly): 1 claim is not comparable; `repro trace f"
    assert line in project.cli("check").stdout
    assert line in project.cli("check", "--require-data", code=3).stdout
    document = json.loads(project.cli("check", "--json").stdout)
    assert document["missing_data"] == {"files": ["philly"], "claims": 1}


def test_a_run_without_public_data_exits_3_on_request(project):
    project.add(FIGURE)
    # tables of the generator
    shutil.copytree(ROOT / "traces", project.root / "traces", dirs_exist_ok=True)
    path = project.root / "notebooks" / f"{FIGURE}.ipynb"
    opened = path.read_text().replace("result = fig", "fig.trace('philly')\\nresult = fig")
    path.write_text(opened)
    offline = {"HTTPS_PROXY": "http://127.0.0.1:9", "REPRO_TRACE_MIRROR": ""}
    shown = project.cli("run", FIGURE, "--require-data", code=3, **offline).stdout
    assert "1 public file not available here (philly)" in shown
    project.cli("run", FIGURE, **offline)


def test_a_miss_counts_more_than_missing_data(project):
    project.add(FIGURE, big=50)
    project.cli("run", FIGURE)
    lose_public_data(project)
    project.cli("check", "--require-data", code=1)
