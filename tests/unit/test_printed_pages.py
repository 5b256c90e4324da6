"""Pages that are run: their blocks run from top to bottom, and print what they show."""

import importlib
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from repro.cli import app

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(not (ROOT / "docs").is_dir(), reason="not run from a checkout")
NAMES = ("README", "start", "your_trace", "your_policy", "your_figure", "commands")


@pytest.fixture(scope="module")
def printed():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs")
        yield importlib.import_module("printed")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_page_prints_what_it_shows(printed, name, tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    text = printed.page(name).read_text()
    shown = [block.text for block in printed.blocks(text) if block.is_printed]
    ran = printed.run_page(name, tmp_path)
    assert [*map(printed.without_times, ran)] == [*map(printed.without_times, shown)]
    if name in printed.PICTURES:
        made, copy = printed.PICTURES[name]
        assert (tmp_path / made).stat().st_size > 0 < (ROOT / "docs" / copy).stat().st_size


def test_all_pages_that_are_run_are_tested(printed):
    assert printed.PAGES == NAMES


def words_of(text):
    """Words of each `repro` command of a page; a line that ends with a backslash goes on."""
    blocks = re.findall(r"^```(?:sh|bash)[^\n]*\n(.*?)^```$", text, re.M | re.S)
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        words = shlex.split(line.partition(" 2> ")[0], comments=True)
        if words and words[0].rpartition("/")[2] == "repro":
            yield words[1:]


@pytest.mark.parametrize("name", NAMES)
def test_commands_of_a_page_exist_with_their_options(printed, name, tmp_path, monkeypatch):
    """Each command line is read as `repro` reads it, and not run."""
    monkeypatch.chdir(tmp_path)
    lines = [*words_of(printed.page(name).read_text())]
    assert lines
    for words in lines:
        parse(words)


def parse(words):
    """Find the command and read its options, as `repro` does."""
    command = typer.main.get_command(app.app)
    parent = None
    words = app.join_pairs(words)
    if words[0].startswith("--"):
        # an option of `repro` itself, which ends the command
        assert words[0] in [name for option in command.params for name in option.opts]
        return
    while hasattr(command, "resolve_command"):
        parent = command.make_context(words[0], [], parent=parent, resilient_parsing=True)
        parent.resilient_parsing = False
        _, command, words = command.resolve_command(parent, words)
    command.make_context("repro", list(words), parent=parent)


def test_a_command_that_does_not_exist_is_noticed():
    with pytest.raises(Exception, match=r"No such option.*--clutser"):
        parse(["trace", "info", "jobs.csv", "--clutser", "8x8"])
    with pytest.raises(Exception, match=r"No such command.*tracce"):
        parse(["tracce"])


PAGE = """\
```csv jobs.csv
job_id
```

```bash exits 3
cat jobs.csv; exit 3
```

```text printed
old
```

```python
name = "x"
```

```python
print(name, "(1.5 s)")
```

```text printed
```
"""


@pytest.fixture
def page(printed, tmp_path, monkeypatch):
    """A function that makes a page the page ``small``."""
    path = tmp_path / "small.md"
    monkeypatch.setattr(printed, "page", lambda _: path)
    folder = tmp_path / "run"
    folder.mkdir()

    def run(text):
        path.write_text(text)
        return printed.run_page("small", folder)

    return run


def test_blocks_are_run_in_order_and_written(printed, page):
    ran = page(PAGE)
    assert ran == ["job_id\n", "x (1.5 s)\n"]
    written = printed.with_printed(PAGE, ran)
    assert "```text printed\njob_id\n```" in written and "old" not in written
    assert written.endswith("```text printed\nx (1.5 s)\n```\n")
    assert printed.without_times("x (1.5 s)") == printed.without_times("x (12 s)\n")
    assert printed.without_times("x 1.5 s") != printed.without_times("x 12 s")


@pytest.mark.parametrize(
    "text",
    [
        "```bash\nexit 1\n```\n",
        "```bash exits 1\ntrue\n```\n",
        "```python\n1 / 0\n```\n",
        "```python\nx = 1\n```\n\n```text printed\n```\n",
    ],
)
def test_a_block_that_fails_is_an_error(printed, page, text):
    with pytest.raises(printed.PageError):
        page(text)
