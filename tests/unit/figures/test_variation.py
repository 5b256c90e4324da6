"""Variations: other parameters than the paper's, a folder of their own, nothing judged."""

import json
from pathlib import Path

import pandas as pd
import pytest

import repro
from repro.base import paths
from repro.figures import params, variation
from repro.plot import bar_chart
from repro.plot.style import Chart

# left out by `make check`
pytestmark = pytest.mark.slow

FIGURE = "tiresias/fig01_one"
VALUES = {"jobs": 6, "big": 200}
ROWS = pd.DataFrame({"policy": ["srtf", "las-2d"], "jct": [1.0, 2.0], "published": [1.1, 2.1]})


@pytest.fixture
def toy(project, monkeypatch):
    monkeypatch.setenv("REPRO_HOME", str(project.root))
    monkeypatch.setenv("REPRO_CACHE_DIR", str(project.root / "cache"))
    project.add(FIGURE)
    return project


def opened(**overrides):
    return repro.figure(FIGURE, **overrides)


def saved(fig):
    plot = bar_chart(ROWS, group="policy", value="jct", published="published", ylabel="JCT (s)")
    verdicts = fig.save(plot, ROWS, VALUES)
    return plot, verdicts, json.loads((fig.folder / "result.json").read_text())


def spec_of(project):
    return params.FigureEntry(FIGURE, project.root).load()


@pytest.mark.parametrize(
    ("overrides", "changed"),
    [
        ({}, {}),
        ({"cluster": None, "seeds": None}, {}),
        # the parameter file's own value, here that of the profile
        ({"cluster": "1x4", "seeds": [0]}, {}),
        ({"cluster": "2x4"}, {"cluster": ["2x4", "1x4"]}),
        ({"seeds": [0, 1]}, {"seeds": [[0, 1], [0]]}),
        ({"extra": "srtf"}, {"extra": ["srtf", None]}),
        ({"extra": []}, {}),
        ({"extra": None}, {}),
        # no inputs of the parameter file
        ({"workers": 3, "colour": "red"}, {}),
    ],
)
def test_differences_from_the_parameter_file(toy, overrides, changed):
    assert variation.differences(spec_of(toy), "quick", overrides) == changed


@pytest.mark.parametrize(
    ("seed", "default", "changed"),
    [(3, 0, {"seed": [3, 0]}), (0, 0, {}), (0, 5, {"seed": [0, 5]}), (3, None, {}), (None, 0, {})],
)
def test_another_seed_than_the_notebooks_is_a_difference(toy, seed, default, changed):
    path = toy.root / "params" / f"{FIGURE}.yaml"
    path.write_text(path.read_text().replace("cluster: 1x4", "cluster: 1x4\n  seed: 4567"))
    assert variation.differences(spec_of(toy), "quick", {"seed": seed}, default) == changed


def test_workers_change_no_result(toy):
    path = toy.root / "params" / f"{FIGURE}.yaml"
    path.write_text(path.read_text().replace("cluster: 1x4", "cluster: 1x4\n  workers: 1"))
    assert variation.differences(spec_of(toy), "quick", {"workers": 2}) == {}


def test_a_profile_is_compared_with_itself(toy):
    assert variation.differences(spec_of(toy), "paper", {"seeds": [0, 1]}) == {}
    assert variation.differences(spec_of(toy), "paper", {"seeds": [0]})


def test_each_variation_has_a_folder_of_its_own(toy):
    wide = {"cluster": ["2x4", "1x4"]}
    out = toy.root / "out"

    def folder(changed, profile="quick"):
        return variation.folder(out, FIGURE, changed, profile)

    assert folder({}) == out / FIGURE
    assert folder(wide).parent == out / "variations" / FIGURE
    assert folder(wide) == folder(dict(wide))
    others = [folder({"cluster": ["3x4", "1x4"]}), folder(wide, "paper")]
    others += [folder({**wide, "seed": [1, 0]}), folder({"seed": [1, 0]})]
    assert len({folder(wide), *others}) == 5


@pytest.mark.parametrize("usual", ["build/figures", "figures"])
def test_variations_of_the_usual_folders_are_in_build(toy, usual):
    assert variation.variations_folder(toy.root / usual) == toy.root / "build" / "variations"
    assert variation.variations_folder(Path("elsewhere")) == Path("elsewhere/variations")
    assert paths.build_dir() == toy.root / "build" / "figures"


def test_texts():
    changed = {"cluster": ["4x8", "8x8"], "traces": [{"a": "x", "b": [1, 2]}, None]}
    assert variation.text({}) == ""
    assert variation.text(changed) == (
        "cluster 4x8 instead of 8x8; traces a: x, b: 1, 2 instead of the default"
    )
    assert variation.text({"extra": [["newest", "las-2d"], None]}) == "with newest, las-2d"
    assert variation.text({"seed": [3, 0]}) == "seed 3 instead of 0"
    long = variation.text({"seeds": [list(range(100)), [0]]})
    assert "… instead of 0" in long and len(long) < 90


@pytest.mark.parametrize(
    ("facts", "changed", "text"),
    [
        ({}, {}, ""),
        # the value of the paper, also where the profile has another
        ({}, {"cluster": ["4x8", "2x8"]}, "cluster 8x8"),
        ({}, {"trace": ["mine.csv", "log"], "cluster": ["4x8", "2x8"]}, "trace log, cluster 8x8"),
        ({"stand_in": "no log"}, {"trace": ["mine.csv", "log"]}, "the paper's own trace"),
        (
            {"unknown": "workload"},
            {"trace": ["mine.csv", "log"], "cluster": ["4x8", "2x8"]},
            "the paper's own trace, cluster 8x8",
        ),
        ({"unknown": "sample"}, {"trace": ["mine.csv", "log"]}, "trace log"),
        # no published value belongs to a seed of ours
        ({}, {"seed": [3, 0], "seeds": [[5], [0]], "extra": [["newest"], None]}, ""),
    ],
)
def test_the_setting_of_published_values_is_the_papers(facts, changed, text):
    spec = params.FigureSpec(
        title="T",
        paper="tiresias",
        reference="Fig 1",
        shows="s",
        inputs={"trace": "log", "cluster": "8x8", "seeds": [0, 1]},
        profiles={"quick": {"cluster": "2x8", "seeds": [0]}},
        **facts,
    )
    assert variation.setting_text(changed, spec) == text


def test_a_variation_judges_nothing_and_leaves_the_figures_own_result(toy):
    usual = opened()
    saved(usual)
    before = {path.name: path.read_bytes() for path in usual.folder.iterdir()}
    varied = opened(cluster="2x4")
    _, verdicts, result = saved(varied)
    assert varied.folder.is_relative_to(toy.root / "build" / "variations" / FIGURE)
    assert result["variation"] == {"cluster": ["2x4", "1x4"]} == varied.variation
    assert result["claims"] == result["points"] == [] and result["verdict"] is None
    assert verdicts.empty
    sentence = "figure: cluster 2x4 instead of 1x4. Nothing is judged; published values belong to"
    assert sentence in repr(verdicts) and sentence in verdicts._repr_html_()
    folder = varied.folder.relative_to(toy.root)
    assert f"Saved in {folder}." in repr(verdicts)
    assert {path.name: path.read_bytes() for path in usual.folder.iterdir()} == before
    assert json.loads(before["result.json"])["claims"] and "variation" not in result["params"]


def test_a_run_with_another_seed_is_a_variation(toy):
    varied = opened(seed=3)
    _, verdicts, result = saved(varied)
    assert varied.folder.is_relative_to(toy.root / "build" / "variations" / FIGURE)
    assert (result["variation"], result["seed"]) == ({"seed": [3, 0]}, 3) and verdicts.empty


def test_values_and_points_of_a_variation_need_not_fit_the_claims(toy):
    varied = opened(cluster="2x4")
    plot = bar_chart(ROWS, group="policy", value="jct", ylabel="JCT (s)")
    assert varied.save(plot, ROWS, {"jobs": None}).empty


def published(plot):
    axes = plot.axes[0]
    return [line for line in axes.lines if line.get_label() == "_published"]


def legend(plot):
    legends = [*plot.legends, plot.axes[0].get_legend()]
    return [text.get_text() for shown in filter(None, legends) for text in shown.get_texts()]


def test_published_values_are_pale_and_the_legend_names_their_setting(toy):
    plot, _, _ = saved(opened())
    assert [line.get_alpha() for line in published(plot)] == [None] and "published" in legend(plot)
    plot, _, _ = saved(opened(cluster="2x4"))
    assert [line.get_alpha() for line in published(plot)] == [0.3]
    assert "published, for cluster 1x4" in legend(plot)


def test_with_an_extra_policy_the_published_values_keep_their_setting(toy):
    path = toy.root / "params" / f"{FIGURE}.yaml"
    path.write_text(path.read_text().replace("cluster: 1x4", "cluster: 1x4\n  policies: [srtf]"))
    plot, verdicts, result = saved(opened(extra="las-2d"))
    assert [line.get_alpha() for line in published(plot)] == [None] and "published" in legend(plot)
    assert result["variation"] == {"extra": ["las-2d", None]} and verdicts.empty
    assert result["params"]["policies"] == ["srtf", "las-2d"]


def test_a_cell_shows_a_variation_with_pale_published_values(toy):
    opened(cluster="2x4")
    shown = bar_chart(
        pd.DataFrame({"policy": ["srtf"], "value": [2.0], "published": [1.0]}),
        group="policy",
        series="policy",
        value="value",
        published="published",
    )
    Chart.before_shown(shown)
    Chart.before_shown(shown)
    assert [line.get_alpha() for line in published(shown)] == [0.3]
    assert legend(shown) == ["SRTF", "published, for cluster 1x4"]
    opened()
    assert Chart.before_shown is None


def test_a_part_of_the_traces_of_a_figure_replaces_none():
    replaces = variation.replaces_trace
    assert not replaces({}) and not replaces({"seed": [1, 0]})
    assert replaces({"trace": ["mine.csv", "testbed"]})
    assert not replaces({"traces": [["a"], ["a", "b"]]})
    assert replaces({"traces": [["a", "mine.csv"], ["a", "b"]]})
    assert not replaces({"traces": [{"A": "a"}, {"A": "a", "B": "b"}]})
    assert replaces({"traces": [{"A": "mine.csv"}, {"A": "a", "B": "b"}]})
