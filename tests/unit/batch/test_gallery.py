"""The gallery page by page: bytes, links, names, chips, sizes; results against other results."""

import copy
import html.parser
import json
import re
from pathlib import Path
from urllib.parse import parse_qs, unquote

import nbformat
import pytest

from repro.batch import report
from repro.batch.card import Card, distance_text, in_order
from repro.batch.check import StoredFigure, headline_lines, stored
from repro.batch.compare_results import compare, totals
from repro.batch.notebook_page import as_page
from repro.batch.papers import papers
from repro.batch.report import write_report
from repro.cli import app
from repro.figures import params
from repro.figures.params import FigureEntry
from repro.figures.saved import to_json

ROOT = Path(__file__).resolve().parents[3]
SVG = (
    b'<?xml version="1.0"?>\n<svg xmlns="x" width="252pt" height="126.0pt" viewBox="0 0 252 126">'
    b'<text style="font-size: 7px; fill: #000">a</text>'
    b"<text><tspan style=\"font: italic 4.5px 'DejaVu Sans'\">b</tspan></text>"
)
ADDRESSES = {paper.address for paper in papers()}
YAML = """\
title: Testbed
paper: {paper}
reference: {reference}
shows: completion times
claims:
  - {{id: gain, kind: number, what: gain, published: 5.5, accept: {{rel: 0.1}}, source: section 5,
     certainty: paper}}
  - {{id: curve, kind: number, what: curve, series: las, accept: {{rel: 0.1}}, source: Fig 8,
     certainty: artifact}}
"""
CLAIM = {
    "id": "gain",
    "kind": "number",
    "what": "gain",
    "published": 5.5,
    "ours": 5.4,
    "tolerance": "±10 %",
    "source": "section 5",
    "certainty": "paper",
    "verdict": "reproduced",
    "stand_in": False,
}
POINT = {
    "series": "las",
    "x": 1.0,
    "quantity": "JCT",
    "published": 10.0,
    "ours": 10.1,
    "unit": "h",
    "distance": 0.01,
    "certainty": "artifact",
    "data": "author's",
    "rules": "paper",
}
SERIES = ("tiresias/fig10_testbed", "Fig 10, section 5"), ("gavel/tab03_x", "Table 3")


def record(figure_id, reference, verdict="reproduced", **more):
    """Return a result."""
    claims = [CLAIM | {"verdict": verdict, "deviation": "<b>other</b> jobs."}]
    return {
        "id": figure_id,
        "paper": figure_id.split("/")[0],
        "title": "Completion <times>",
        "reference": reference,
        "shows": "times & more",
        "profile": "paper",
        "seed": 0,
        "stand_in": None,
        "notes": [],
        "params": {"seeds": list(range(12)), "rules": "paper"},
        "data": [{"name": "philly", "kind": "public", "sha256": "ab" * 32}],
        "versions": {"python": "3.11", "scipy": "1.17"},
        "verdict": verdict,
        "wall_s": 3.21,
        "claims": [*claims, CLAIM | {"id": "b", "kind": "check"}],
        "points": [POINT],
        **more,
    }


def put(root, result, out="figures"):
    folder = root / out / result["id"]
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("png", "svg", "csv"):
        (folder / f"{folder.name}.{suffix}").write_bytes(SVG)
    (folder / "result.json").write_bytes(to_json(result))


@pytest.fixture
def root(tmp_path, monkeypatch):
    for (figure_id, reference), verdict in zip(SERIES, ("missed", "reproduced"), strict=True):
        paper = figure_id.split("/")[0]
        text = YAML.format(paper=paper, reference=f'"{reference}"')
        files = (
            (f"params/{figure_id}.yaml", text),
            (f"notebooks/{figure_id}.ipynb", '{"cells": []}'),
        )
        for name, content in files:
            (tmp_path / name).parent.mkdir(parents=True)
            (tmp_path / name).write_text(content)
        put(tmp_path, record(figure_id, reference, verdict))
    monkeypatch.setenv("REPRO_HOME", str(tmp_path))
    return tmp_path


def written(root, out="figures", **more):
    """Write the gallery; return its pages by their place."""
    write_report(root / out, stored(params.discover(root), root / out), **more)
    return {
        page.relative_to(root / out): page.read_text() for page in root.glob(f"{out}/**/*.html")
    }


def without_papers(page):
    """Page without the addresses of the papers, the only ones that it may name."""
    return re.sub(
        r'<a href="(https://[^"]+)">',
        lambda link: "<a>" if link[1] in ADDRESSES else link[0],
        page,
    )


class Reader(html.parser.HTMLParser):
    """What a page names: addresses, ids, pictures."""

    def __init__(self, page):
        super().__init__()
        self.links = []
        self.ids = []
        self.pictures = []
        self.fields = set()
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        found = dict(attributes)
        self.links += [found[name] for name in ("href", "src") if found.get(name)]
        self.ids += [found["id"]] if "id" in found else []
        self.pictures += [found] if tag == "img" else []
        self.fields |= {found["name"]} if tag in ("input", "select") else set()


def check_links(pages, out):
    """Every address is a file beside the page or a place in one of the pages."""
    read = {(out / place).resolve(): Reader(text) for place, text in pages.items()}
    for page, reader in read.items():
        assert len(reader.ids) == len(set(reader.ids))
        for link in reader.links:
            if link == "data:," or link in ADDRESSES:
                continue
            path, _, place = unquote(link).partition("#")
            target = (page.parent / path).resolve() if path else page
            assert target.exists() or target in read, link
            if place.startswith("?"):
                assert set(parse_qs(place[1:], strict_parsing=True)) <= read[target].fields
            elif place:
                assert place in read[target].ids, link


def test_pages_have_the_same_bytes_each_time_and_need_no_network(root):
    pages = written(root)
    assert sorted(map(str, pages)) == ["gavel/index.html", "index.html", "tiresias/index.html"]
    assert written(root) == pages
    for text in map(without_papers, pages.values()):
        assert not re.search(r"https?:|@import|url\(|//[a-z]", text)
        assert str(root) not in text
        assert "Completion &lt;times&gt;" in text and "<times>" not in text
    assert "&lt;b&gt;other&lt;/b&gt; jobs.<" in pages[Path("index.html")]
    check_links(pages, root / "figures")


def test_a_summary_has_the_picture_the_reference_and_the_verdict(root):
    page = written(root)[Path("index.html")]
    card = page[page.index('<details class="card"') :]
    summary = card[: card.index("</summary>")]
    words = " ".join(re.sub("<[^>]*>", " ", summary).split())
    assert words == "Table 3 Gavel Completion &lt;times&gt; reproduced 1 number, 100 % within 2 %"
    assert 'src="gavel/tab03_x/tab03_x.svg"' in summary
    assert "repro run tiresias/fig10_testbed --profile paper<" in page
    assert "seeds 0 to 11" in page and "3.21 s" in page and "sha256 <code>abab" in page


def test_cards_are_closed_and_their_ids_are_links_to_places_inside(root):
    page = written(root)[Path("index.html")]
    assert page.count('<details class="card"') == 2 and "<details open" not in page
    for card in page.split('<details class="card"')[1:]:
        summary, _, inside = card.partition("</summary>")
        figure_id = re.search(r'<a class="id" href="#([^"]+)"><code>([^<]+)</code></a>', inside)
        assert figure_id[1] == figure_id[2] and figure_id[1] in [name for name, _ in SERIES]
        # A browser opens the card of a place that is inside it, not of one in its summary.
        for name in (figure_id[1], figure_id[1].replace("/", "-")):
            assert f'id="{name}"' in inside and f'id="{name}"' not in summary


def test_a_card_of_a_failed_figure_shows_its_traceback(root):
    put(root, record(*SERIES[0]))
    error = {"id": SERIES[0][0], "error": "ValueError: 1 < 2", "traceback": "line 3", "cell": 1}
    (root / "figures" / SERIES[0][0] / "error.json").write_bytes(to_json(error))
    page = written(root)[Path("index.html")]
    assert "Failed: ValueError: 1 &lt; 2." in page and "line 3</pre>" in page
    assert 'data-verdict="failed"' in page


def test_every_card_and_page_has_a_link_to_its_paper(root):
    address = {paper.paper: paper.address for paper in papers()}
    pages = written(root)
    for card in pages[Path("index.html")].split('<details class="card"')[1:]:
        name = re.search('data-paper="([a-z]+)"', card)[1]
        card, *_ = card.partition("</section>")
        assert {link for link in ADDRESSES if f'href="{link}"' in card} == {address[name]}
    for name in ("gavel", "tiresias"):
        links = Reader(pages[Path(name, "index.html")]).links
        assert ADDRESSES & set(links) == {address[name]}


def test_a_figure_about_several_papers_has_a_link_to_each():
    def works(reference):
        stored_figure = StoredFigure(FigureEntry("tour/a", ROOT), ROOT, {"reference": reference})
        return [paper.paper for paper in Card(stored_figure).works]

    assert works("Tiresias Fig 7; Muri Fig 4") == ["tiresias", "muri"]
    assert works("who wins (no figure of a paper)") == [paper.paper for paper in papers()]


def test_the_top_page_leads_with_a_tile_per_paper(root):
    page = written(root)[Path("index.html")]
    tiles = page[page.index('<ul class="tiles"') : page.index("</ul>")]
    assert page.index('<ul class="tiles"') < page.index("<table") < page.index('class="filters"')
    links = Reader(tiles).links
    assert [link for link in links if link.endswith("index.html")] == [
        *["gavel/index.html"] * 3,
        *["tiresias/index.html"] * 3,
    ]
    assert "gavel/tab03_x/tab03_x.svg" in links and ADDRESSES & set(links)
    words = " ".join(re.sub("<[^>]*>", " ", tiles).split())
    assert "1 missed" in words and "1 published number" in words and "100 % within 1 %" in words


def test_papers_come_before_the_groups_of_our_own_figures():
    names = ("tour/a", "arena/b", "tiresias/c", "gavel/d")
    figures = [StoredFigure(FigureEntry(name, ROOT), ROOT, {}) for name in names]
    ordered = [card.stored.entry.paper for card in in_order(figures)]
    assert ordered == ["gavel", "tiresias", "arena", "tour"]


def test_the_farthest_number_of_a_card_decides_its_place_in_the_order_by_distance(root):
    near = {**POINT, "ours": 10.2, "distance": 0.02}
    far = {**POINT, "ours": 6.0, "distance": -0.4}
    uncounted = {**POINT, "ours": 30.0, "distance": 2.0, "aside": True}
    put(root, record(*SERIES[0], points=[near, far, uncounted]))
    put(root, record(*SERIES[1], points=[uncounted]))
    first, second = map(Card, stored(params.discover(root), root / "figures"))
    assert (first.worst, second.worst) == (None, -0.4)
    page = written(root)[Path("index.html")]
    (off,) = re.findall(r'data-off="([^"]+)"', page)
    assert off == "0.4" and "farthest −40.0 %" in page


def test_pictures_have_their_size_and_verdicts_a_sign_beside_the_colour(root):
    page = written(root)[Path("index.html")]
    for picture in Reader(page).pictures:
        assert (picture["width"], picture["height"]) == ("700", "350")
        assert picture["loading"] == "lazy" and "alt" in picture
    assert page.count("--w:504px") == 2  # 9 px for type of 4.5 on a picture of 252
    assert '<b class="chip miss">missed</b>' in page and '<b class="chip own">holds</b>' in page
    for tone, sign in (("good", "✓"), ("part", "◐"), ("miss", "✗"), ("none", "○")):
        assert f'.{tone}::before {{ content: "{sign} "; }}' in page


def test_a_page_per_paper_says_what_did_not_come_out_and_why(root):
    page = written(root)[Path("tiresias/index.html")]
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "1 misses at least one published value" in words
    assert "published 5.5, ours 5.4, −1.8 % off; tolerance ±10 %." in words
    assert "&lt;b&gt;other&lt;/b&gt; jobs." in words and "jobs..." not in words
    assert "1 other claim of this figure is reproduced." in words


def test_a_page_in_the_folder_of_a_paper_is_nobodys_damage(root, capsys):
    written(root)
    assert app.main(["check"]) == 0
    assert "damaged" not in capsys.readouterr().out


def test_a_notebook_that_ran_is_linked_as_a_page_but_not_from_the_committed_gallery(root):
    ran = root / "build/notebooks/tiresias/fig10_testbed.html"
    before = written(root)
    ran.parent.mkdir(parents=True)
    ran.write_text("x")
    assert written(root) == before
    put(root, record(*SERIES[0]), out="build/figures")
    pages = written(root, "build/figures")
    assert 'href="../notebooks/tiresias/fig10_testbed.html"' in pages[Path("index.html")]
    check_links(pages, root / "build/figures")


@pytest.mark.parametrize(
    ("reference", "short", "kinds"),
    [
        ("Fig 8, section 7.3", "Fig 8", ["figure"]),
        ("Fig 1 (a) and (b)", "Fig 1", ["figure"]),
        ("Figs 3a, 3b, section 5.2", "Figs 3a, 3b", ["figure"]),
        ("Table 1, section 5", "Table 1", ["table"]),
        ("section 5.2.4", "Section 5.2.4", ["text"]),
        ("sections 5.2 and 5.3; no figure", "On sections 5.2 and 5.3", ["beyond the paper"]),
        ("Pseudocode 1, section 3.2.1", "Pseudocode 1", ["algorithm"]),
        ("FIFO, single-GPU jobs (figure of the artifact)", "Artifact, FIFO", ["text"]),
        ("lecture slides, LAS example", "Lecture slides", ["text"]),
        ("Tiresias Fig 7; Gavel example; Muri Fig 4", "Tiresias Fig 7 and others", ["text"]),
        ("true, unknown (no figure of a paper)", "Beyond the papers", ["beyond the paper"]),
        ("discussion, x (no figure of the paper)", "Discussion", ["beyond the paper"]),
    ],
)
def test_short_names_and_kinds(reference, short, kinds):
    card = Card(StoredFigure(FigureEntry("a/b", ROOT), ROOT, {"reference": reference}))
    assert (card.short, card.kinds) == (short, kinds)


@pytest.mark.parametrize(
    ("result", "is_measured"),
    [
        ({"kind": "measured", "data": []}, True),
        ({"data": [{"name": "traces/measured/pause.csv", "kind": "own file"}]}, True),
        ({"data": [{"name": "muri-trace1", "kind": "public"}]}, False),
    ],
)
def test_a_filter_shows_all_figures_on_our_measurements(result, is_measured):
    card = Card(StoredFigure(FigureEntry("a/b", ROOT), ROOT, result))
    assert ("measured" in card.kinds) is is_measured


@pytest.mark.parametrize(
    ("given", "seed", "told"),
    [
        ([0, 1, 2], 0, "seeds 0 to 2"),
        ([5, 3], 0, "seeds 5, 3"),
        (200, 0, "200 seeds"),
        (None, 7, "seed 7"),
        ({"ours": 3, "others": [1]}, 0, "3 seeds (ours); seed 1 (others)"),
    ],
)
def test_the_seeds_that_ran(given, seed, told):
    inputs = {} if given is None else {"seeds": given}
    card = Card(StoredFigure(FigureEntry("a/b", ROOT), ROOT, {"seed": seed, "params": inputs}))
    assert card.seeds == told


def test_off_judges_each_of_ours_by_a_single_published_value():
    assert distance_text(10.0, [9.0, 10.5]) == "≤ 10.0 %"
    assert distance_text([1.0], [1.0]) == "0.0 %" and distance_text(5, None) == ""


@pytest.mark.parametrize(("published", "ours"), [(3.0, []), ([], []), ([], 3.0)])
def test_without_values_there_is_no_distance(published, ours):
    assert distance_text(published, ours) == ""


def test_the_committed_results_make_a_page_that_is_small_enough(monkeypatch):
    pages = {}
    monkeypatch.setenv("REPRO_HOME", str(ROOT))
    monkeypatch.setattr(report, "write_whole", pages.__setitem__)
    out = ROOT / "figures"
    found = stored(params.discover(ROOT), out)
    write_report(out, found)
    assert len(pages[out / "index.html"]) < 7_000 * len(found)
    check_links({place.relative_to(out): page.decode() for place, page in pages.items()}, out)
    shorts = [Card(one).short for one in found]
    assert all(re.match("On |[A-Z]", short) and len(short) < 40 for short in shorts)


def test_a_notebook_becomes_a_page_of_its_own():
    picture = nbformat.v4.new_output("display_data", {"image/png": "iVBORw0KGgo="})
    told = nbformat.v4.new_output("stream", text="\x1b[31mred\x1b[0m <i>")
    cells = [
        nbformat.v4.new_markdown_cell("# Fig 8\n\nWords with `code`."),
        nbformat.v4.new_code_cell("x = 1 < 2", outputs=[picture, told], execution_count=1),
        nbformat.v4.new_code_cell("say('<script>')"),
        nbformat.v4.new_raw_cell("<script>left out</script>"),
    ]
    notebook = nbformat.writes(nbformat.v4.new_notebook(cells=cells)).encode()
    page = as_page(notebook, "gavel/b", "../../figures/index.html").decode()
    assert not re.search(r"https?:|<script|@import|url\(", without_papers(page))
    assert "Fig 8</h1>" in page and "data:image/png;base64,iVBORw0KGgo=" in page
    assert "red</span> &lt;i&gt;" in page and "<title>gavel/b</title>" in page
    links = Reader(page).links
    back = '<a href="../../figures/index.html#gavel/b"><code>gavel/b</code> in the gallery</a>'
    assert back in page
    assert [link for link in links if link in ADDRESSES] == [papers()[1].address]
    alone = as_page(notebook, "gavel/b", None).decode()
    assert "in the gallery" not in alone and papers()[1].address in alone
    other = as_page(notebook, "my/own", "index.html").decode()
    assert not ADDRESSES & set(Reader(other).links) and 'href="index.html#my/own"' in other


def test_a_picture_without_a_size_is_shown_without_one(root):
    for path in root.glob("figures/*/*/*.svg"):
        path.write_text("<svg>")
    page = written(root)[Path("index.html")]
    assert not any("width" in picture for picture in Reader(page).pictures)
    assert "--w:" not in page


def test_a_png_is_linked_except_from_the_committed_gallery(root):
    put(root, record(*SERIES[0]), out="build/figures")
    for out in ("figures", "build/figures"):
        (root / out / "tiresias/fig10_testbed/fig10_testbed.png").write_bytes(b"x")
        pages = written(root, out)
        assert (".png" in pages[Path("index.html")]) == (out != "figures")


def results(root, **changes):
    """Return results as they lie in the folder, those of the first figure changed."""
    found = stored(params.discover(root), root / "figures")
    told = copy.deepcopy(dict(found[1].result)) | changes
    return [found[0], StoredFigure(found[1].entry, found[1].folder, told)]


def test_results_against_others_name_what_moved_and_what_left_its_tolerance(root):
    entries = params.discover(root)
    specs = params.loaded(entries)[0]
    before = results(root)
    assert totals(compare(before, before, specs)) == "0 of 2 points moved; 0 worse, 0 better"
    moved = results(root, points=[POINT | {"ours": 11.5, "distance": 0.15}])
    _, change = compare(moved, before, specs)
    assert change.lines() == [
        "worse: point left its tolerance: las at 1, JCT: 11.5, was 10.1, published 10 h",
        "moved: las at 1, JCT: 11.5, was 10.1, published 10 h",
    ]
    _, back = compare(before, moved, specs)
    assert back.better and not back.worse
    _, inside = compare(results(root, points=[POINT | {"ours": 10.2}]), before, specs)
    assert inside.moved and not inside.worse and not inside.better
    _, gone = compare(results(root, points=[], claims=[]), before, specs)
    assert len(gone.worse) == 3 and all("gone" in line for line in gone.worse)


def test_other_inputs_seeds_and_data_are_not_compared(root):
    before = results(root)
    specs = params.loaded(params.discover(root))[0]
    for change, reason in (
        ({"profile": "quick", "params": {"n": 1}}, "profile quick here, paper there"),
        ({"seed": 3}, "seed 3 here, 0 there"),
        ({"stand_in": "drawn"}, "other data"),
    ):
        _, found = compare(results(root, **change), before, specs)
        assert found.other.startswith(reason) and not found.lines()
    _, found = compare(results(root, profile="quick"), before, specs)
    assert not found.other
    assert totals(compare(before, before[:1], specs)).endswith("1 figure not compared")


def test_check_and_report_against_a_folder(root, capsys):
    worse = record(*SERIES[1]) | {"points": [POINT | {"ours": 20.0}]}
    put(root, worse, out="mine")
    assert app.main(["check", "--out", str(root / "mine"), "--against", str(root / "figures")]) == 1
    told = capsys.readouterr().out
    assert "gavel/tab03_x  worse: point left its tolerance: las at 1" in told
    assert "1 of 1 points moved; 1 worse, 0 better" in told
    words = ["--out", str(root / "mine"), "--against", str(root / "figures")]
    assert app.main(["check", "--json", *words]) == 1
    assert json.loads(capsys.readouterr().out)["against"][0]["id"] == "gavel/tab03_x"
    assert app.main(["report", *words]) == 0
    page = (root / "mine/index.html").read_text()
    assert "Compared with the other results: worse: point left its tolerance" in page
    for there in ("mine", "nowhere"):
        assert app.main(["check", *words[:3], str(root / there)]) == 2
        (line,) = capsys.readouterr().err.splitlines()[-1:]
        assert line.startswith(f"repro: --against {root / there}: ")


def test_a_damaged_result_among_the_others_is_named(root, capsys):
    for series in SERIES:
        put(root, record(*series))
        put(root, record(*series), out="mine")
    words = ["check", "--out", str(root / "mine"), "--against", str(root / "figures")]
    files = sorted((root / "figures").glob("*/*/result.json"))
    files[0].write_text('{"id": ')
    assert app.main(words) == 0
    shown = capsys.readouterr().out
    id_0, id_1 = ("/".join(file.parts[-3:-1]) for file in files)
    assert f"not compared, result damaged there: {id_0}\n" in shown
    files[1].write_text("")
    assert app.main(words) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line == f"repro: --against {root / 'figures'}: results damaged there: {id_0}, {id_1}"


def test_the_headline_parts_what_nobody_can_know_and_what_a_model_predicts(root):
    far = {**POINT, "ours": 20.0, "distance": 1.0}
    points = [
        POINT,
        {**far, "unknown": "workload"},
        {**far, "unknown": "sample", "data": "stand-in"},
        {**POINT, "origin": "testbed"},
        {**far, "origin": "testbed", "fitted_on": "Fig 5"},
        {**far, "origin": "testbed", "fitted": True},
    ]
    put(root, record(*SERIES[0], points=points))
    put(root, record(*SERIES[1], points=[POINT]))
    lines = headline_lines(stored(params.discover(root), root / "figures"))
    shown = [line.removeprefix("published numbers, ") for line in lines if "published" in line]
    assert shown[:7] == [
        "all: 6 judged, 50% within 1 %, 50% within 2 %, 50% within 10 %",
        "all inputs known: 4 judged, 75% within 1 %, 75% within 2 %, 75% within 10 %",
        "simulated by the authors: 4 judged, 50% within 1 %, 50% within 2 %, 50% within 10 %",
        "simulated, on available data: 3 judged, 67% within 1 %, 67% within 2 %, 67% within 10 %",
        "simulated, all inputs known: 2 judged, 100% within 1 %, 100% within 2 %, 100% within 10 %",
        "measured on a testbed: 2 judged, 50% within 1 %, 50% within 2 %, 50% within 10 %",
        "measured, predicted by a model fitted on other numbers: 1 judged, 0% within 1 %, "
        "0% within 2 %, 0% within 10 %",
    ]
    assert shown[-1].startswith("published numbers with an input that nobody can know: 2 (")
    assert "workload not published 1" in shown[-1]


def test_versions_that_most_results_share_are_said_once(root):
    page = written(root)[Path("index.html")]
    assert page.count("scipy 1.17; linear programmes") == 1
    assert page.count('<a href="#versions">as most results</a>') == 2
    other = record("gavel/tab03_x", "Table 3", versions={"scipy": "1.16"})
    put(root, other)
    page = written(root)[Path("index.html")]
    assert "as most results" not in page
    assert "scipy 1.16" in page and "scipy 1.17" in page
