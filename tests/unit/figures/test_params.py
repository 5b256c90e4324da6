"""Parameter files: strict reading, discovery, shortened ids, profiles."""

from pathlib import Path

import pytest

from repro.base.errors import ClaimError, ParamError
from repro.figures import params
from repro.files.strict_yaml import parse_value

ROOT = Path(__file__).resolve().parents[3]
GOOD = """\
title: Testbed
paper: tiresias
reference: "Fig 10"
shows: completion times
inputs:
  cluster: 15x4
  gap: 1e3
  seeds: [0, 1, 2]
profiles:
  paper: {}
  quick: {seeds: [0]}
stand_in: null
claims:
  - id: gain
    kind: number
    what: average gain
    published: 5.5
    accept: {low: 4.2, high: 5.8}
    source: section 5.2.1
    certainty: paper
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    for paper, stem in (
        ("tiresias", "fig01_one"),
        ("tiresias", "fig10_testbed"),
        ("tiresias", "fig10b_other"),
        ("gavel", "tab02_jobs"),
    ):
        write(tmp_path, paper, stem, GOOD.replace("paper: tiresias", f"paper: {paper}"))
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    return tmp_path


def write(root, paper, stem, text):
    for folder, suffix, content in (("params", "yaml", text), ("notebooks", "ipynb", "{}")):
        (root / folder / paper).mkdir(parents=True, exist_ok=True)
        (root / folder / paper / f"{stem}.{suffix}").write_text(content)
    return root / "params" / paper / f"{stem}.yaml"


def test_reading_and_merging(root):
    spec = params.load(root / "params/tiresias/fig10_testbed.yaml")
    assert spec.inputs["gap"] == 1000.0 and spec.kind == "figure"
    assert spec.claims[0].accept.high == 5.8
    assert spec.merged("paper", {})["seeds"] == [0, 1, 2]
    assert spec.merged("quick", {"gap": None})["seeds"] == [0]
    assert spec.merged("quick", {"seeds": [7]})["seeds"] == [7]
    spec.merged("paper", {})["seeds"].append(9)
    assert spec.inputs["seeds"] == [0, 1, 2]
    with pytest.raises(
        ParamError, match=r"unknown parameter 'seed'; did you mean 'seeds'\?.*cluster"
    ):
        spec.merged("paper", {"seed": 1})
    with pytest.raises(ParamError, match="unknown profile 'full'"):
        spec.merged("full", {})


def test_a_value_may_have_the_form_that_a_profile_has(root):
    text = GOOD.replace("quick: {seeds: [0]}", "quick: {seeds: []}")
    spec = params.load(write(root, "tiresias", "fig11_empty", text))
    assert spec.merged("paper", {"seeds": []})["seeds"] == []
    with pytest.raises(ParamError, match=r"seeds is \['a'\]; give a list of whole numbers"):
        spec.merged("paper", {"seeds": ["a"]})


def test_a_number_below_0_is_refused_if_the_file_has_none(root):
    text = GOOD.replace(
        "seeds: [0, 1, 2]", "seeds: [0, 1, 2]\n  every: 2\n  shift: 1\n  at: [-1, 2]"
    )
    text = text.replace("quick: {seeds: [0]}", "quick: {seeds: [0], shift: -3}")
    spec = params.load(write(root, "tiresias", "fig11_signs", text))
    with pytest.raises(ParamError, match=r"^every is -1; give a whole number of 0 or more"):
        spec.merged("paper", {"every": -1})
    with pytest.raises(ParamError, match=r"seeds is \[0, -1\]; give a list of whole numbers of 0"):
        spec.merged("paper", {"seeds": [0, -1]})
    merged = spec.merged("paper", {"every": 0, "shift": -1, "at": [-5]})
    assert (merged["every"], merged["shift"], merged["at"]) == (0, -1, [-5])


def test_a_number_below_the_least_that_the_file_names_is_refused(root):
    text = GOOD.replace("gap: 1e3", "gap: 1e3\n  every: 2").replace(
        "profiles:", "least: {every: 1, seeds: 0.5, gap: 0}\nprofiles:"
    )
    spec = params.load(write(root, "tiresias", "fig11_least", text))
    for name, value, least in (("every", 0, "1"), ("every", -1, "1"), ("seeds", [3, 0], "0.5")):
        with pytest.raises(ParamError) as caught:
            spec.merged("paper", {name: value})
        message = str(caught.value)
        assert message.startswith(f"{name} is {value}; give ")
        assert f" of {least} or more, such as " in message
    assert spec.merged("paper", {"every": 1, "gap": 0})["every"] == 1
    unknown = text.replace("least: {every: 1", "least: {evrey: 1")
    with pytest.raises(ParamError, match=r":\d+:.*least names 'evrey', which inputs does not have"):
        params.load(write(root, "tiresias", "fig11_unknown", unknown))


def test_an_input_of_a_profile_goes_with_the_profiles_cluster(root):
    text = GOOD.replace("gap: 1e3", "gap: 1e3\n  scale: 1").replace(
        "profiles:", "goes_with: {scale: cluster}\nprofiles:"
    )
    text = text.replace("{seeds: [0]}", "{seeds: [0], cluster: 2x4, scale: 4}")
    spec = params.load(write(root, "tiresias", "fig11_scale", text))
    assert spec.merged("quick", {})["scale"] == 4
    assert spec.merged("quick", {"cluster": "2x4"})["scale"] == 4
    assert spec.merged("quick", {"cluster": "3x4"})["scale"] == 1
    assert spec.merged("quick", {"cluster": "3x4", "scale": 2})["scale"] == 2
    unknown = text.replace("scale: cluster}", "scale: clusters}")
    with pytest.raises(ParamError, match=r"goes_with names 'clusters', which inputs does not have"):
        params.load(write(root, "tiresias", "fig11_unknown", unknown))


def test_every_nth_of_a_figure_is_1_or_more():
    """A step of 0 ended a cell with `slice step cannot be zero`."""
    for entry in params.discover(ROOT):
        spec = entry.load()
        if isinstance(spec.inputs.get("every"), int):
            with pytest.raises(ParamError, match=r"^every is 0; give a whole number of 1 or more"):
                spec.merged("paper", {"every": 0})


@pytest.mark.parametrize(
    ("old", "new", "kind", "message"),
    [
        ("shows:", "show:", ParamError, r"bad\.yaml:4:show: unknown key; did you mean 'shows'\?"),
        ("title: Testbed", "title: 3", ParamError, r"bad\.yaml:1:title: .*string, not 3"),
        ("quick: {seeds: [0]}", "quick: 3", ParamError, r"bad\.yaml:11:profiles\.quick: .*not 3"),
        ("  gap: 1e3", "  gap: [1", ParamError, r"bad\.yaml:8: not valid YAML"),
        ("  gap: 1e3", "\tgap: 1", ParamError, r"bad\.yaml:7: not valid YAML"),
        ("  gap:", "  cluster:", ParamError, r"bad\.yaml:7:inputs\.cluster: given twice"),
        ("quick: {seeds", "quick: {sedes", ParamError, r"sets 'sedes', which inputs does not"),
        ("quick:", "fast:", ParamError, r"bad\.yaml:9:profiles: unknown profile 'fast'"),
        ("high: 5.8", "high: x", ClaimError, r"bad\.yaml:18:claims\.0\.accept\.high.*number"),
        ("high: 5.8", "high: .inf", ClaimError, r"bad\.yaml:18:claims\.0\.accept\.high: inf is no"),
        ("high: 5.8", "high: [1, x]", ClaimError, r":18:claims\.0\.accept\.high\.1: .*number, not"),
        ("low: 4.2", "low: 9", ClaimError, r":18:claims\.0\.accept: low 9 is above high 5\.8"),
        (
            "published: 5.5",
            "published: []",
            ClaimError,
            r":17:claims\.0\.published: has no value",
        ),
        ("certainty: paper", "certainty: no", ClaimError, r"bad\.yaml:20:claims\.0\.certainty"),
        ("    certainty: paper\n", "", ClaimError, r"bad\.yaml:14:claims\.0\.certainty: Field req"),
        ("shows: completion times", 'shows: ""', ParamError, r"bad\.yaml:4:shows: must be one"),
        (
            "title: Testbed",
            "title: T\nkind: chart",
            ParamError,
            r"bad\.yaml:2:kind: .*'figure', 'diag",
        ),
    ],
)
def test_errors_name_file_line_and_key(root, old, new, kind, message):
    assert old in GOOD
    path = write(root, "tiresias", "bad", GOOD.replace(old, new, 1))
    with pytest.raises(kind, match=message) as caught:
        params.load(path)
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith("params/tiresias/bad.yaml:")


@pytest.mark.parametrize("text", ["", "just words", "- a\n- b"])
def test_a_file_that_is_no_mapping(root, text):
    with pytest.raises(ParamError, match="must be a mapping"):
        params.load(write(root, "tiresias", "bad", text))


def test_unreadable_files(root):
    path = write(root, "tiresias", "bad", "")
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ParamError, match="not UTF-8"):
        params.load(path)
    with pytest.raises(ParamError, match="cannot be read"):
        params.load(path.parent)


def test_claim_ids_are_unique(root):
    twice = GOOD + GOOD[GOOD.index("  - id") :]
    with pytest.raises(ParamError, match="'gain' is used twice"):
        params.load(write(root, "tiresias", "bad", twice))


def test_measured_figures_have_own_checks_only(root):
    measured = f"kind: measured\n{GOOD}"
    with pytest.raises(ParamError, match=r"'gain' is about a paper.*give the claim kind: check"):
        params.load(write(root, "tiresias", "bad", measured))
    spec = params.load(
        write(root, "tiresias", "good", measured.replace("kind: number", "kind: check"))
    )
    assert spec.kind == "measured"


def test_every_figure_of_the_folder_measured_is_of_that_kind():
    entries = [entry for entry in params.discover(ROOT) if entry.paper == "measured"]
    assert {entry.load().kind for entry in entries} == {"measured"}


def test_paper_must_be_the_folder(root):
    write(root, "gavel", "fig99_x", GOOD)
    (entry,) = params.select(["gavel/fig99"], params.discover())
    with pytest.raises(ParamError, match="'tiresias' but the folder is 'gavel'"):
        entry.load()


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e3", 1000.0),
        ("1E+3", 1000.0),
        ("-2.5e-3", -0.0025),
        ("10", 10),
        (".5", 0.5),
        ("1_000", 1000),
        ("0", 0),
        ("0.5", 0.5),
        ("0x10", 16),
        (".inf", float("inf")),
        ("12:30", "12:30"),
        ("off", "off"),
        ("yes", "yes"),
        ("true", True),
        ("null", None),
        ("2017-10-01", "2017-10-01"),
        ("15x4", "15x4"),
        ("e3", "e3"),
        ("[1e2, a]", [100.0, "a"]),
        ("", None),
    ],
)
def test_scalars_are_what_people_mean(text, value):
    assert parse_value(text) == value
    assert type(parse_value(text)) is type(value)


def test_a_bad_command_line_value():
    with pytest.raises(ParamError, match=r"value '\[1'"):
        parse_value("[1")


def test_checkpoints_of_jupyterlab_are_no_figures(root):
    before = params.discover(root)
    checkpoints = root / "notebooks/.ipynb_checkpoints"
    checkpoints.mkdir(parents=True)
    (checkpoints / "start-checkpoint.ipynb").write_text("{}")
    assert params.discover(root) == before


def test_discovery_and_selection(root):
    (root / "notebooks/course").mkdir()
    (root / "notebooks/course/hw1.ipynb").write_text("{}")
    entries = params.discover()
    assert [entry.id for entry in entries] == [
        "gavel/tab02_jobs",
        "tiresias/fig01_one",
        "tiresias/fig10_testbed",
        "tiresias/fig10b_other",
    ]
    assert params.resolve("tiresias/fig10", entries).stem == "fig10_testbed"
    assert params.resolve("tiresias/fig10b", entries).stem == "fig10b_other"
    assert params.resolve("tab02", entries).paper == "gavel"
    assert params.resolve("fig01_one", entries).paper == "tiresias"
    with pytest.raises(ParamError, match="ambiguous: tiresias/fig01_one, tiresias/fig10_testbed"):
        params.resolve("tiresias/", entries)
    with pytest.raises(ParamError, match="unknown figure 'tiresias/fig10_tset'; did you mean"):
        params.resolve("tiresias/fig10_tset", entries)
    with pytest.raises(ParamError, match="unknown paper 'gavle'; did you mean 'gavel'"):
        params.select([], entries, paper="gavle")
    assert len(params.select([], entries)) == 4
    assert len(params.select([], entries, paper="tiresias")) == 3
    assert [e.stem for e in params.select(["tab02", "gavel/tab02_jobs"], entries)] == ["tab02_jobs"]
    assert [e.stem for e in params.select(["tab02"], entries, paper="gavel")] == ["tab02_jobs"]


def test_a_prefix_is_one_of_the_paper(root):
    """A prefix that is ambiguous among all papers may be unique among the figures of one."""
    (root / "params/gavel/fig10_load.yaml").write_text("title: x")
    entries = params.discover()
    with pytest.raises(ParamError, match="ambiguous"):
        params.select(["fig10"], entries)
    assert [e.id for e in params.select(["fig10"], entries, paper="gavel")] == ["gavel/fig10_load"]
    with pytest.raises(ParamError, match="tiresias/fig01_one is no figure of --paper gavel; "):
        params.select(["fig01"], entries, paper="gavel")
    with pytest.raises(ParamError, match="unknown figure 'nonsense'"):
        params.select(["nonsense"], entries, paper="gavel")


@pytest.mark.parametrize("ids", [["tab02"], ["fig01", "tab02"]])
def test_a_figure_of_another_paper_is_refused(root, ids):
    with pytest.raises(ParamError, match="gavel/tab02_jobs is no figure of --paper tiresias; "):
        params.select(ids, params.discover(), paper="tiresias")


def test_a_project_without_figures_is_refused():
    with pytest.raises(ParamError, match="no figures here"):
        params.select([], [])


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        ("notebooks/tiresias/fig01_one.ipynb", "params/tiresias/fig01_one.yaml has no notebooks/"),
        ("params/tiresias/fig01_one.yaml", "notebooks/tiresias/fig01_one.ipynb has no params/"),
    ],
)
def test_a_missing_half_is_named(root, gone, named):
    (root / gone).unlink()
    entries = params.discover()
    assert len(entries) == 4
    with pytest.raises(ParamError, match=named):
        params.resolve("fig01_one", entries).load()
    well, broken = params.loaded(entries)
    assert [entry.id for entry in broken] == ["tiresias/fig01_one"] and len(well) == 3


def name_notebook(root, stem, name):
    """Let a figure of Tiresias name a notebook instead of having its own; return its path."""
    path = root / f"params/tiresias/{stem}.yaml"
    path.write_text(path.read_text().replace("paper:", f"notebook: {name}\npaper:", 1))
    (root / f"notebooks/tiresias/{stem}.ipynb").unlink()
    return path


@pytest.fixture
def shared(root):
    """A notebook that two figures name."""
    (root / "notebooks/tiresias/shared.ipynb").write_text("{}")
    name_notebook(root, "fig01_one", '"shared"  # of both')
    name_notebook(root, "fig10_testbed", "tiresias/shared")
    return root


def test_figures_may_name_a_notebook(shared):
    entries = params.discover()
    assert [entry.stem for entry in entries] == [
        "tab02_jobs",
        "fig01_one",
        "fig10_testbed",
        "fig10b_other",
    ]
    stems = [entry.notebook.relative_to(shared / "notebooks").as_posix() for entry in entries]
    assert stems == [
        "gavel/tab02_jobs.ipynb",
        "tiresias/shared.ipynb",
        "tiresias/shared.ipynb",
        "tiresias/fig10b_other.ipynb",
    ]
    assert [entry.names_notebook for entry in entries] == [False, True, True, False]
    assert entries[1].executed_notebook == shared / "build/notebooks/tiresias/fig01_one.ipynb"
    assert params.loaded(entries)[1] == {}


def test_a_figure_may_name_a_notebook_of_another_paper(root):
    name_notebook(root, "fig01_one", "gavel/tab02_jobs")
    entry = params.resolve("fig01_one", params.discover())
    assert entry.notebook == root / "notebooks/gavel/tab02_jobs.ipynb"
    assert entry.load().notebook == "gavel/tab02_jobs"


def test_a_broken_parameter_file_keeps_its_notebook(shared):
    path = shared / "params/tiresias/fig01_one.yaml"
    path.write_text(path.read_text() + "claims: [")
    entries = params.discover()
    assert len(entries) == 4
    (broken,) = params.loaded(entries)[1]
    assert broken.notebook == shared / "notebooks/tiresias/shared.ipynb"


@pytest.mark.parametrize("text", ["shared", "tiresias/shared"])
def test_the_name_of_a_shared_notebook_lists_its_figures(shared, text):
    message = rf"'{text}' is the notebook of tiresias/fig01_one, tiresias/fig10_testbed; name a"
    with pytest.raises(ParamError, match=message):
        params.resolve(text, params.discover())


def test_a_notebook_that_nothing_names_is_an_error(shared):
    path = shared / "params/tiresias/fig01_one.yaml"
    (shared / "notebooks/tiresias/lonely.ipynb").write_text("{}")
    well, broken = params.loaded(params.discover())
    ((entry, error),) = broken.items()
    assert entry.id == "tiresias/lonely" and len(well) == 4
    assert str(error) == (
        "notebooks/tiresias/lonely.ipynb has no params/tiresias/lonely.yaml, and no parameter file "
        "names it; write that file, or name the notebook in another (notebook: STEM)"
    )
    path.write_text(path.read_text().replace('"shared"', "lonely"))
    assert params.loaded(params.discover())[1] == {}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        (
            "shraed",
            ": notebook: there is no notebooks/tiresias/shraed.ipynb; did you mean 'shared'",
        ),
        ("gavel/x", ": notebook: there is no notebooks/gavel/x.ipynb"),
        ("shared.ipynb", ":2:notebook: 'shared.ipynb' is no notebook; give STEM or PAPER/STEM"),
        ("../x", ":2:notebook: '../x' is no notebook; give STEM or PAPER/STEM"),
        ("3", ":2:notebook: Input should be a valid string, not 3"),
        ("[a]", ":2:notebook: Input should be a valid string, not ['a']"),
        ("\n  shared", ": notebook: write the key and its value on one line"),
    ],
)
def test_errors_of_the_key_notebook(shared, name, told):
    path = name_notebook(shared, "fig10b_other", name)
    with pytest.raises(ParamError) as caught:
        params.resolve("fig10b", params.discover()).load()
    assert str(caught.value).startswith(f"params/tiresias/{path.name}{told}")
    assert "\n" not in str(caught.value)


def test_a_named_notebook_replaces_the_figures_own(shared):
    (shared / "notebooks/tiresias/fig01_one.ipynb").write_text("{}")
    entries = params.discover()
    assert len(entries) == 4
    message = "names notebooks/tiresias/shared.ipynb, but notebooks/tiresias/fig01_one.ipynb exists"
    with pytest.raises(ParamError, match=message):
        params.resolve("fig01_one", entries).load()
