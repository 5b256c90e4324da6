"""The site: its contents, links and anchors, what it generates from the code, and its build."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from pydantic import BaseModel
from typer.testing import CliRunner

import repro
from repro.cli.app import app
from repro.comparison.result import METRICS
from repro.papers.pcs import objectives
from repro.testing import small_trace

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(DOCS).with_suffix("").as_posix()
    for path in [*DOCS.glob("*.md"), *DOCS.glob("formats/*.md")]
)
#: Texts outside docs/ that people read in the checkout.
OTHERS = sorted(
    path.relative_to(ROOT).as_posix()
    for pattern in ("*.md", "course/*.md", "notebooks/**/*.md", "traces/**/*.md", "repro/**/*.md")
    for path in ROOT.glob(pattern)
)
FIVE = ("tiresias", "gavel", "muri", "liquid", "pcs")


@pytest.fixture(scope="module")
def pages():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(DOCS)
        yield importlib.import_module("pages")


@pytest.fixture(scope="module")
def reference(pages):
    return importlib.import_module("reference")


def ids_of(html: Path) -> set[str]:
    return set(re.findall(r'\bid="([^"]+)"', html.read_text()))


def check_link(pages, path: Path, anchor: str, shown: str) -> None:
    assert path.exists(), shown
    name = anchor.removeprefix("#")
    if not name:
        return
    page = pages.page_of(path)
    if path.suffix == ".html":
        assert name in ids_of(path), shown
    elif page is not None:
        assert name in pages.anchors(pages.text_of(page)), shown
    else:
        assert path.suffix == ".md" and name in pages.anchors(path.read_text()), shown


# Contents and links


def test_every_page_is_in_the_contents_once(pages):
    groups = pages.contents()
    listed = Counter(page for titles in groups.values() for page in titles)
    listed.update(page for name in PAGES for page in pages.below(name))
    wanted = {*PAGES, *(f"notebooks/{figure}" for figure in pages.notebooks())} - {"index"}
    assert listed == Counter(wanted)
    assert all(titles for titles in groups.values())
    assert set(pages.below("formats/README")) == {
        name for name in PAGES if name.startswith("formats/")
    } - {"formats/README"}


@pytest.mark.parametrize("page", PAGES)
def test_links_and_anchors_of_a_page_resolve(pages, page):
    text = pages.text_of(page)
    assert text.startswith("# "), "a page begins with its title"
    for target in pages.targets(text):
        path, anchor = pages.resolve(page, target)
        if path is not None:
            check_link(pages, path, anchor, f"{page}: {target}")


@pytest.mark.parametrize("name", OTHERS)
def test_links_of_a_text_outside_the_pages_resolve(pages, name):
    path = ROOT / name
    text = path.read_text()
    for target in pages.targets(text):
        if pages.is_outside(target):
            continue
        file, mark, anchor = target.partition("#")
        if not file:
            assert anchor in pages.anchors(text), target
            continue
        other = (path.parent / file).resolve()
        # GitHub shows a file itself, the site the page that includes it
        assert other.exists(), f"{name}: {target}"
        if mark and other.suffix == ".md" and pages.page_of(other) is not None:
            check_link(pages, other, f"#{anchor}", f"{name}: {target}")


def test_links_in_code_are_none_and_repeated_headings_have_numbers(pages):
    code = "```python\n[f](g.md)\n# not a heading\n```\n"
    text = f"# A\n[b](c.md) `[d](e.md)`\n{code}## A\n## `x`: y, z\n"
    assert pages.targets(text) == ["c.md"]
    assert pages.anchors(text) == {"a", "a-1", "x-y-z"}
    assert pages.map_targets(text, str.upper) == text.replace("c.md", "C.MD")


def test_links_lead_to_pages_to_included_files_and_to_copied_files(pages):
    text = "[a](../ARTIFACT.md#1-abstract) [b](../figures/index.html#gavel) [d](inventory)"
    assert pages.for_site(text, "status") == (
        "[a](artifact.md#1-abstract) [b](copied:figures/index.html#gavel) "
        "[d](copied:docs/inventory/index.html)"
    )
    assert pages.for_site("[e](../../README.md) [f](../api.md)", "formats/gavel") == (
        "[e](../index.md) [f](../api.md)"
    )


def test_an_included_file_has_links_from_its_page(pages):
    assert "](../docs/" not in pages.text_of("artifact")
    for page in ("artifact", "changes", "programmes"):
        kept = re.findall(r"\]\((?!https?:|#)([^)#]+)", pages.text_of(page))
        assert all((DOCS / target).exists() for target in kept)


def test_a_broken_link_or_anchor_of_the_built_site_is_found(pages, tmp_path):
    (tmp_path / "a.html").write_text(
        '<a href="b.html#here"></a><a href="b.html#gone"></a><a href="c.html"></a>'
        '<a href="https://example.org/x"></a><a href="#"></a><img src="d.svg">'
        '<a href="b.html#?paper=pcs"></a>'
    )
    (tmp_path / "b.html").write_text('<p id="here"></p>')
    assert pages.broken_links(tmp_path) == [
        "a.html: b.html#gone",
        "a.html: c.html",
        "a.html: d.svg",
    ]


# What is generated from the code


def sections(text: str) -> dict[str, str]:
    parts = re.split(r"^## (.+)$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_every_command_has_all_its_options(reference):
    shown = sections(reference.cli())
    assert {"repro run", "repro trace doctor", "repro course grade"} <= shown.keys()
    for words, section in shown.items():
        done = CliRunner().invoke(app, [*words.split()[1:], "--help"], env={"COLUMNS": "200"})
        assert done.exit_code == 0, done.output
        named = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", done.output, re.MULTILINE)) - {"--help"}
        assert named <= set(re.findall(r"--[\w-]+", section)), words


def test_an_option_has_its_value_its_meaning_and_its_default(reference):
    shown = sections(reference.cli())
    assert re.search(
        r"^\| `--profile \w+` \| \w.+ \| `quick` \|$", shown["repro run"], re.MULTILINE
    )
    trace = r"^\| `--trace FILE\\\|NAME` \| \w.+ \| required \|$"
    assert re.search(trace, shown["repro simulate"], re.MULTILINE)
    assert re.search(r"^\| `DIR` \| \w.+ \| required \|$", shown["repro crate"], re.MULTILINE)


def test_every_key_of_a_parameter_file_has_a_meaning_and_no_other(reference):
    models: set[type[BaseModel]] = set(reference.MODELS)
    keys = {(model.__name__, key) for model in models for key in model.model_fields}
    meanings = reference.key_meanings()
    assert meanings.keys() == keys and all(meanings.values())
    shown = reference.params()
    assert "| `kind` | `figure`, `diagram`, `measured` |" in shown
    assert "| `claims` | list of [claims]" in shown


def test_every_schema_has_a_section_with_its_fields(reference):
    shown = sections(reference.schemas())
    assert shown.keys() == {path.stem for path in reference.SCHEMAS.glob("*.json")}
    assert "| `claims[].verdict` |" in shown["result"]
    assert "| `headline.points.by_paper.*` | distances |" in shown["check"]
    assert "**distances**" in shown["check"]
    for name, section in shown.items():
        schema = json.loads((reference.SCHEMAS / f"{name}.json").read_text())
        fields = schema.get("items", schema).get("properties", {})
        for field in fields:
            assert re.search(rf"^\| `(\[\]\.)?{re.escape(field)}` \|", section, re.MULTILINE), field


def test_every_public_name_has_an_entry(reference):
    shown = re.findall(r"^\.\. auto\w+:: (\S+)$", reference.api(), re.MULTILINE)
    listed = [name for names in reference.public_names().values() for name in names]
    assert shown == listed and len(set(listed)) == len(listed) > 70
    assert {f"repro.{name}" for name in repro.__all__} - {"repro.__version__"} <= set(listed)


# Metrics


def metric_rows(heading: str) -> dict[str, str]:
    """Unit of each metric of a section of docs/metrics.md."""
    text = sections((DOCS / "metrics.md").read_text())[heading]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \|", text, re.MULTILINE)
    return {name: unit for names, unit in rows for name in re.findall(r"\w+", names)}


def test_the_page_has_the_metrics_of_a_run():
    trace = small_trace()
    divided = repro.simulate(trace, "1x8", "max-min", predict=3, predict_interval=0.9)
    texts = {"policy", "trace", "cluster", "ignored", "notes", "stand_in"}
    assert metric_rows("A run").keys() == divided.summary().keys() - texts
    assert divided.summary().keys() >= repro.simulate(trace, "1x8", "srtf").summary().keys()


def test_the_page_has_the_metrics_of_a_comparison_and_their_units():
    units = {name: metric.unit or "–" for name, metric in METRICS.items()}
    assert metric_rows("A comparison") == units


def test_the_page_has_the_metrics_of_a_front_and_their_units():
    units = {name: unit or "–" for name, (_, unit) in objectives._METRICS.items()}
    assert metric_rows("A front") == units


# Notebooks as pages


def test_five_figures_of_five_papers_are_pages(pages):
    papers = [figure.split("/")[0] for figure in pages.notebooks()]
    assert sorted(papers) == sorted(FIVE)


@pytest.mark.parametrize("paper", FIVE)
def test_a_notebook_page_has_the_committed_picture_and_verdicts(pages, paper):
    (figure,) = [name for name in pages.notebooks() if name.startswith(f"{paper}/")]
    document = pages.notebook_source(figure)
    cells = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    original = json.loads((ROOT / "notebooks" / f"{figure}.ipynb").read_text())["cells"]
    sources = ["".join(cell["source"]) for cell in original if cell["cell_type"] == "code"]
    shown = ["".join(cell["source"]) for cell in cells]
    assert shown == [sources[0], 'profile = "paper"', *sources[1:]]
    outputs = [output["data"] for cell in cells for output in cell["outputs"]]
    picture, verdicts = outputs
    stem = figure.split("/")[1]
    folder = ROOT / "figures" / figure
    assert picture == {"image/svg+xml": (folder / f"{stem}.svg").read_text()}
    claims = json.loads((folder / "result.json").read_text())["claims"]
    cells = re.findall(r"<td[^>]*>([^<]*)</td>", verdicts["text/html"])
    shown_verdicts = [verdict.split(":")[0] for verdict in cells[::6]]
    words = [claim["verdict"] for claim in claims]
    assert [word.replace("holds", "reproduced") for word in shown_verdicts] == words
    assert len(cells) == 6 * len(claims)


# Build


@pytest.mark.nightly
@pytest.mark.timeout(900)
def test_the_site_is_built_without_a_warning(tmp_path):
    """About 25 s of CPU time. The extra `docs` has what it needs."""
    pytest.importorskip("sphinx")
    pytest.importorskip("myst_nb")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-d", tmp_path / "trees", DOCS]
    done = subprocess.run([*command, tmp_path / "site"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    home = (tmp_path / "site" / "index.html").read_text()
    assert 'href="notebooks/gavel/fig08_las_single.html"' in home
    names = (tmp_path / "site" / "api.html").read_text()
    assert 'id="repro.simulate"' in names and 'id="repro.Result.summary"' in names
    assert (tmp_path / "site" / "figures" / "index.html").exists()
    # nothing is asked of another host
    for page in (tmp_path / "site").glob("*.html"):
        assert not re.search(r'<(?:script|link|img)[^>]+(?:src|href)="https?:', page.read_text())
