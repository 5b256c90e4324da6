"""Values of a batch in one file, and the comparison of another batch with them."""

import json
import re
import shutil
from pathlib import Path

import pytest
from test_gallery import POINT, SERIES, YAML, put, record
from test_gallery import root as root

from repro.batch.check import stored
from repro.batch.compare_results import compare
from repro.batch.reference import Reference, save
from repro.cli import app
from repro.figures import params

ROOT = Path(__file__).resolve().parents[3]
#: What a notebook or one of its modules calls to measure time.
CLOCKS = re.compile(r"process_time|perf_counter|\bcpu_s\b|allocation_seconds|cpu_s_per_job")


def words(root, *more):
    return ["check", "--out", str(root / "figures"), *more]


def saved(root, name="quick.json"):
    path = root / name
    app.main(words(root, "--save", str(path)))
    return path


def test_a_reference_has_a_line_per_claim_and_rounded_values(root):
    put(root, record(*SERIES[0], points=[POINT | {"ours": 10.123456789}]))
    text = saved(root).read_text()
    assert '"gain": {"verdict": "reproduced"' in text
    assert '"x": [1.0], "ours": [10.1235]' in text
    content = json.loads(text)
    assert (content["profile"], content["digits"]) == ("paper", 6)
    assert list(content["figures"]) == sorted(content["figures"])
    (known,) = content["figures"][SERIES[0][0]]
    assert (known["data"], known["seed"], known["stand_in"]) == ("public", 0, None)


def test_the_number_of_figures_of_a_reference_is_printed(root, capsys):
    path = root / "quick.json"
    save_words = words(root, "--save", str(path))
    app.main([*save_words, SERIES[0][0]])
    assert f"reference of 1 figure: {path}\n" in capsys.readouterr().out
    app.main(save_words)
    assert f"reference of 2 figures: {path}\n" in capsys.readouterr().out


def test_equal_results_pass_and_what_moved_or_got_worse_is_named(root, capsys):
    path = saved(root)
    capsys.readouterr()
    assert app.main(words(root, "--against", str(path))) == 0
    assert "0 of 2 points moved; 0 worse, 0 better" in capsys.readouterr().out

    # a last digit, as on another CPU
    put(root, record(*SERIES[1], points=[POINT | {"ours": 10.1 * (1 + 1e-9)}]))
    assert app.main(words(root, "--against", str(path))) == 0
    assert "0 of 2 points moved" in capsys.readouterr().out

    put(root, record(*SERIES[1], points=[POINT | {"ours": 10.2}]))
    assert app.main(words(root, "--against", str(path))) == 0
    told = capsys.readouterr().out
    assert "gavel/tab03_x  moved: las at 1, JCT: 10.2, was 10.1, published 10 h" in told
    assert "1 of 2 points moved; 0 worse, 0 better" in told

    put(root, record(*SERIES[1], points=[POINT | {"ours": 11.5}]))
    assert app.main(words(root, "--against", str(path))) == 1
    assert "gavel/tab03_x  worse: point left its tolerance: las at 1" in capsys.readouterr().out

    gallery = ["report", "--out", str(root / "figures"), "--against", str(path)]
    assert app.main(gallery) == 0
    page = (root / "figures/index.html").read_text()
    assert "Compared with the other results: worse: point left its tolerance" in page
    capsys.readouterr()

    put(root, record(*SERIES[1], verdict="missed"))
    assert app.main(words(root, "--against", str(path))) == 1
    assert "gavel/tab03_x  worse: claim gain is missed, was reproduced" in capsys.readouterr().out


def copied(root, there):
    """Results of all figures as a reference file or as a folder."""
    if there == "quick.json":
        return saved(root)
    return shutil.copytree(root / "figures", root / "other")


@pytest.mark.parametrize("there", ["quick.json", "folder"])
def test_a_figure_that_only_the_other_results_have_is_counted(root, capsys, there):
    """It is no error, because one figure may run and be compared alone."""
    other = copied(root, there)
    (gone, _), (kept, _) = SERIES
    shutil.rmtree(root / "figures" / gone)
    capsys.readouterr()
    assert app.main(words(root, "--against", str(other))) == 0
    told = capsys.readouterr().out
    assert f"not compared, no result here: {gone}\n" in told
    assert "0 worse, 0 better; 1 figure not compared" in told
    assert app.main(words(root, "--against", str(other), kept)) == 0
    assert "not compared" not in capsys.readouterr().out


@pytest.mark.parametrize("there", ["quick.json", "folder"])
def test_a_figure_whose_parameter_file_is_gone_is_counted(root, capsys, there):
    other = copied(root, there)
    (gone, _), (kept, _) = SERIES
    shutil.rmtree(root / "figures" / gone)
    (root / "params" / f"{gone}.yaml").unlink()
    (root / "notebooks" / f"{gone}.ipynb").unlink(missing_ok=True)
    capsys.readouterr()
    assert app.main(words(root, "--against", str(other))) == 0
    told = capsys.readouterr().out
    assert f"not compared, no parameter file here: {gone}\n" in told
    assert "0 worse, 0 better; 1 figure not compared" in told
    assert app.main(words(root, "--against", str(other), kept)) == 0
    assert "not compared" not in capsys.readouterr().out
    assert app.main(["report", "--out", str(root / "figures"), "--against", str(other)]) == 0


def test_a_claim_without_points_that_moved_is_named(root):
    path = saved(root)
    moved = record(*SERIES[1])
    moved["claims"][0]["ours"] = 5.6
    put(root, moved)
    entries = params.discover(root)
    figures = stored(entries, root / "figures")
    earlier = Reference(path).matching(figures)
    changes = {change.id: change for change in compare(figures, earlier, {})}
    assert not changes[SERIES[0][0]].lines()
    change = changes["gavel/tab03_x"]
    assert change.lines() == ["moved: claim gain: 5.6, was 5.4, published 5.5"]


def test_a_timed_figure_is_compared_by_its_verdicts(root, capsys):
    for figure_id, reference in SERIES:
        paper = figure_id.split("/")[0]
        text = YAML.format(paper=paper, reference=f'"{reference}"')
        text = text.replace("claims:", "timed: true\nclaims:")
        (root / f"params/{figure_id}.yaml").write_text(text)
    path = saved(root)
    assert "ours" not in path.read_text().split('"figures"')[1]
    put(root, record(*SERIES[1], points=[POINT | {"ours": 99.0}]))
    capsys.readouterr()
    assert app.main(words(root, "--against", str(path))) == 0
    assert "0 of 0 points moved" in capsys.readouterr().out
    # the claim `gain` has a recorded deviation
    put(root, record(*SERIES[1], verdict="missed"))
    assert app.main(words(root, "--against", str(path))) == 0
    told = capsys.readouterr().out
    assert "is missed, was reproduced; a measured time" in told
    assert "0 of 0 points moved; 0 worse, 0 better; 1 claim moved\n" in told
    fallen = record(*SERIES[1])
    fallen["claims"][1]["verdict"] = "partial"
    put(root, fallen)
    assert app.main(words(root, "--against", str(path))) == 1
    assert "worse: claim b is partial, was reproduced" in capsys.readouterr().out


def test_stand_ins_and_public_traces_are_apart(root, capsys):
    public = {"name": "philly", "kind": "public", "sha256": "ab" * 32}
    lacking = {"name": "philly", "kind": "synthetic stand-in", "sha256": None}
    standing_in = record(
        *SERIES[1],
        stand_in="synthetic stand-in for philly",
        data=[lacking],
        points=[POINT | {"ours": 12.0}],
    )
    (root / "traces").mkdir()
    shutil.copy(ROOT / "traces/registry.csv", root / "traces")
    path = saved(root)
    put(root, standing_in)
    saved(root)
    states = json.loads(path.read_text())["figures"][SERIES[1][0]]
    assert [state["data"] for state in states] == ["public", "stand-ins"]
    capsys.readouterr()
    for result in (standing_in, record(*SERIES[1], data=[public])):
        put(root, result)
        assert app.main(words(root, "--against", str(path))) == 0
        assert "0 of 2 points moved; 0 worse, 0 better\n" in capsys.readouterr().out
    put(root, record(*SERIES[1], stand_in="another"))
    assert app.main(words(root, "--against", str(path))) == 0
    assert f"not compared, other data: {SERIES[1][0]}" in capsys.readouterr().out
    # a comparison of nothing does not pass
    assert app.main(words(root, "--against", str(path), SERIES[1][0])) == 1


def test_a_reference_is_of_whole_results_of_one_profile(root, capsys):
    put(root, record(*SERIES[1], profile="quick"))
    assert app.main(words(root, "--save", str(root / "r.json"))) == 2
    assert "results of one profile" in capsys.readouterr().err
    (root / "figures" / SERIES[1][0] / "tab03_x.svg").unlink()
    assert app.main(words(root, "--save", str(root / "r.json"))) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("r.json: not written, because gavel/tab03_x failed or is damaged")


@pytest.mark.parametrize("text", ["{", "[]", "{}", '{"format": "other"}', "[" * 5000])
def test_a_file_that_is_no_reference_is_refused_in_a_line(root, capsys, text):
    path = root / "broken.json"
    path.write_text(text)
    assert app.main(words(root, "--against", str(path))) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"repro: {path}: ") and "--save FILE" in line


def test_a_claim_about_several_series_compares(root):
    text = YAML.format(paper="gavel", reference="Table 3").replace(
        "series: las", "series: [las, fifo], at: {gt: 1}"
    )
    (root / f"params/{SERIES[1][0]}.yaml").write_text(text)
    entries = [entry for entry in params.discover(root) if entry.id == SERIES[1][0]]
    specs = params.loaded(entries)[0]
    far = {**POINT, "x": 2.0, "series": "fifo"}

    def figures(*points):
        put(root, record(*SERIES[1], points=list(points)))
        return stored(entries, root / "figures")

    before = figures(POINT, far)
    (change,) = compare(figures(POINT, far | {"ours": 20.0}), before, specs)
    assert [line.split(":")[0] for line in change.worse] == ["point left its tolerance"]
    # the claim does not judge x = 1
    (change,) = compare(figures(POINT | {"ours": 20.0}, far), before, specs)
    assert change.moved and not change.worse


def test_figures_that_measure_time_say_so():
    for entry in params.discover(ROOT):
        measures_time = CLOCKS.search(entry.notebook.read_text()) is not None
        assert entry.load().timed == measures_time, entry.id


def test_the_committed_reference_has_every_figure():
    values = json.loads((ROOT / "figures/quick.json").read_text())["figures"]
    assert list(values) == [entry.id for entry in params.discover(ROOT)]


def test_save_returns_the_number_of_figures(root):
    figures = stored(params.discover(root), root / "figures")
    assert save(root / "r.json", figures, {}, {"tiresias/fig10_testbed", "gavel/tab03_x"}) == 2
    assert save(root / "r.json", figures[:1], {}, {"gavel/tab03_x"}) == 1
