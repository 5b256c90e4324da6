"""Runs of tiny projects through the command line: results, resuming, failing, being killed."""

import base64
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from itertools import pairwise

import psutil
import pytest

# left out by `make check`
pytestmark = pytest.mark.slow

KINDS = ("svg", "csv")
#: how long a figure took, in the gallery
WALL = r"<dd class=\"wall\">.*</dd>"


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir() if p.suffix[1:] in KINDS}


def without_wall(result):
    return {
        name: value for name, value in result.items() if name not in ("wall_s", "cpu_s", "rounds")
    }


def wait_for(path, seconds=60):
    end = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < end, f"{path} did not appear"
        time.sleep(0.05)


def test_a_run_writes_everything_and_a_second_one_skips(project):
    project.add("tiresias/fig01_one")
    project.add("gavel/tab02_two", big=3)
    first = project.cli("run", "--all", "-j", "2")
    counts = "verdicts: 3 of 4 claims reproduced, 1 missed; 1 missed without a recorded deviation"
    assert counts in first.stdout
    assert f"gallery:  {project.root / 'build/figures/index.html'}" in first.stdout
    folder = project.folder("tiresias/fig01_one")
    assert sorted(p.name for p in folder.iterdir()) == [
        "fig01_one.csv",
        "fig01_one.svg",
        "result.json",
    ]
    result = project.result("tiresias/fig01_one")
    assert result["params"] == {"cluster": "1x4", "seeds": [0]}
    assert (result["paper"], result["profile"], result["seed"]) == ("tiresias", "quick", 0)
    assert [row["verdict"] for row in result["claims"]] == ["reproduced", "reproduced"]
    assert result["claims"][0]["ours"] == 6 and result["claims"][0]["tolerance"] == "exact"
    assert {"python", "numpy", "pandas", "repro"} <= set(result["versions"])
    page = (project.root / "build/notebooks/tiresias/fig01_one.html").read_text()
    assert 'href="../../figures/index.html#tiresias/fig01_one"' in page
    assert (project.root / "build/notebooks/tiresias/fig01_one.ipynb").is_file()

    started = time.monotonic()
    second = project.cli("run", "--all")
    assert "2 of 2 figures are current" in second.stdout
    assert time.monotonic() - started < 10
    assert project.result("tiresias/fig01_one") == result


def test_a_run_that_gives_the_same_leaves_the_files_and_counts_as_current(project):
    project.add("tiresias/fig01_one")
    project.cli("run", "--all", "--out", "figures")
    folder = project.folder("tiresias/fig01_one", "figures")
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    parameters = project.root / "params/tiresias/fig01_one.yaml"
    parameters.write_text(f"# a remark\n{parameters.read_text()}")
    assert "are current" not in project.cli("run", "--all", "--out", "figures").stdout
    now = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert now.pop(".confirmed.json") and now == first
    assert "1 of 1 figures are current" in project.cli("run", "--all", "--out", "figures").stdout


def test_a_png_on_demand_runs_a_current_figure_again(project):
    project.add("tiresias/fig01_one")
    project.cli("run", "--all")
    png = project.folder("tiresias/fig01_one") / "fig01_one.png"
    assert not png.exists()
    assert "are current" not in project.cli("run", "--all", "--png").stdout
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "1 of 1 figures are current" in project.cli("run", "--all", "--png").stdout


def pictures(project, figure_id):
    """Pictures in the cells of an executed notebook: SVGs, and texts of those not shown."""
    path = project.root / f"build/notebooks/{figure_id}.ipynb"
    shown = []
    for cell in json.loads(path.read_text())["cells"]:
        for output in cell.get("outputs", []):
            page = "".join(output.get("data", {}).get("text/html", ""))
            encoded = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", page)
            shown += [base64.b64decode(code) for code in encoded]
            text = "".join(output.get("data", {}).get("text/plain", ""))
            shown += [text] if "shown once" in text else []
    return shown


CHART = """\
from repro.plot import line_chart
import pandas as pd
import repro
fig = repro.figure("tiresias/fig01_one", profile=profile, seed=seed, out=out, seeds=seeds)
line_chart(pd.DataFrame({"x": [1, 2], "y": [1, 2]}), x="x", y="y")"""


def test_cells_of_an_executed_notebook_show_the_saved_picture_and_others(project):
    project.add("tiresias/fig01_one", before=CHART)
    project.cli("run", "--all")
    other, saved = pictures(project, "tiresias/fig01_one")
    assert saved == (project.folder("tiresias/fig01_one") / "fig01_one.svg").read_bytes()
    assert other.startswith(b"<?xml") and b"caption" not in other


def test_a_picture_is_shown_though_a_later_cell_fails(project):
    project.add("tiresias/fig01_one", before=CHART, big="no_such_name")
    project.cli("run", "--all", code=1)
    (shown,) = pictures(project, "tiresias/fig01_one")
    assert shown.startswith(b"<?xml")


def test_another_profile_or_parameter_makes_it_run_again(project):
    project.add("tiresias/fig01_one")
    project.cli("run", "--all")
    assert "are current" not in project.cli("run", "--all", "--profile", "paper").stdout
    assert project.result("tiresias/fig01_one")["params"]["seeds"] == [0, 1]
    assert "are current" not in project.cli("run", "fig01", "-p", "seed", "3").stdout
    assert project.result("tiresias/fig01_one")["profile"] == "paper"
    assert "are current" in project.cli("run", "fig01", "-p", "seed", "3").stdout


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(project):
    for number in range(2):
        project.add(f"tiresias/fig0{number}_x")
    project.cli("run", "--all", "-j", "1", "--out", "one")
    project.cli("run", "--all", "-j", "2", "--out", "two")
    one, two = (project.root / out / "index.html" for out in ("one", "two"))
    assert re.sub(WALL, "", one.read_text()) == re.sub(WALL, "", two.read_text())
    for number in range(2):
        one, two = (project.folder(f"tiresias/fig0{number}_x", out) for out in ("one", "two"))
        assert contents(one) == contents(two) and len(contents(one)) == 2
        results = (project.result(f"tiresias/fig0{number}_x", out) for out in ("one", "two"))
        assert without_wall(next(results)) == without_wall(next(results))


def test_a_notebook_that_raises_leaves_its_traceback_and_the_others_go_on(project):
    project.add("tiresias/fig01_good")
    project.add("tiresias/fig02_bad", before='raise ValueError("no such <thing>")')
    done = project.cli("run", "--all", "-j", "1", code=1)
    assert "failed in cell [3]: ValueError: no such <thing>" in done.stdout
    assert "1 figure failed" in done.stdout
    assert project.result("tiresias/fig01_good")
    copy = json.loads((project.root / "build/notebooks/tiresias/fig02_bad.ipynb").read_text())
    assert any(o.get("ename") == "ValueError" for c in copy["cells"] for o in c.get("outputs", []))
    page = (project.root / "build/figures/index.html").read_text()
    assert "no such &lt;thing&gt;" in page and "executed notebook" in page
    assert "ValueError" in project.cli("check", code=1).stdout

    project.add("tiresias/fig02_bad")
    again = project.cli("run", "--all")
    assert "1 of 2 figures are current" in again.stdout
    assert not (project.folder("tiresias/fig02_bad") / "error.json").exists()
    project.cli("check")


def test_a_notebook_that_kills_its_kernel_fails_alone(project):
    project.add("tiresias/fig01_dead", before="import os; os._exit(7)")
    project.add("tiresias/fig02_good")
    done = project.cli("run", "--all", "-j", "2", code=1)
    assert "Kernel died" in done.stdout and "fig02_good: 2 of 2 claims reproduced" in done.stdout


def test_a_notebook_that_saves_nothing_fails(project):
    project.add("tiresias/fig01_one")
    path = project.root / "notebooks/tiresias/fig01_one.ipynb"
    path.write_text(path.read_text().replace("fig.save(", "print("))
    assert "ended without saving" in project.cli("run", "--all", code=1).stdout


def test_a_batch_killed_at_once_is_resumed(project):
    project.add("tiresias/fig01_fast")
    project.add("tiresias/fig02_slow", before="import time; time.sleep(60)")
    batch = project.start("run", "--all", "-j", "1")
    wait_for(project.folder("tiresias/fig01_fast") / "result.json")
    # The runner adds the fingerprint right after the notebook has ended.
    end = time.monotonic() + 20
    while "fingerprint" not in project.result("tiresias/fig01_fast"):
        assert time.monotonic() < end
        time.sleep(0.05)
    kernels = psutil.Process(batch.pid).children(recursive=True)
    os.kill(batch.pid, signal.SIGKILL)
    batch.communicate()
    _, alive = psutil.wait_procs(kernels, timeout=10)
    assert not alive, "a kernel outlived its batch"
    before = contents(project.folder("tiresias/fig01_fast"))
    assert len(before) == 2
    assert not list(project.folder("tiresias/fig02_slow").glob("*"))
    project.add("tiresias/fig02_slow")
    done = project.cli("run", "--all")
    assert "1 of 2 figures are current" in done.stdout
    assert contents(project.folder("tiresias/fig01_fast")) == before
    assert not list((project.root / "build").rglob(".*"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_ends_within_two_seconds(project, number):
    project.add("tiresias/fig01_slow", before="open('started', 'w').close()\nwhile True: pass")
    batch = project.start("run", "--all", "-j", "1")
    wait_for(project.root / "notebooks/tiresias/started")
    kernels = psutil.Process(batch.pid).children(recursive=True)
    assert kernels
    started = time.monotonic()
    os.kill(batch.pid, number)
    _, err = batch.communicate(timeout=10)
    assert time.monotonic() - started < 2
    assert batch.returncode == 130
    assert err.strip().splitlines() == [
        "repro: interrupted, 0 of 1 figures done; the same command goes on from here"
    ]
    assert not psutil.wait_procs(kernels, timeout=2)[1]
    assert not list(project.folder("tiresias/fig01_slow").glob("*"))


def test_a_damaged_cache_entry_is_computed_again_with_a_warning(project):
    project.add("tiresias/fig01_one")
    project.cli("run", "--all")
    (entry,) = (project.root / "cache").rglob("*.pkl")
    whole = entry.read_bytes()
    entry.write_bytes(whole[: len(whole) // 2])
    done = project.cli("run", "--all", "--force")
    assert "warning: damaged cache entry" in done.stdout
    assert "2 of 2 claims reproduced" in done.stdout
    assert "warning" not in project.cli("run", "--all", "--force").stdout


@pytest.mark.slow
def test_two_batches_share_a_cache(project):
    for number in range(2):
        project.add(f"tiresias/fig0{number}_x")
    batches = [project.start("run", "--all", "-j", "2", "--out", f"out{n}") for n in range(2)]
    for batch in batches:
        out, err = batch.communicate(timeout=120)
        assert batch.returncode == 0, out + err
    for number in range(2):
        one, two = (project.folder(f"tiresias/fig0{number}_x", f"out{n}") for n in range(2))
        assert contents(one) == contents(two)


#: A notebook that needs the workers itself, while others wait for their turn.
GIVES_WORK = """\
import os
if "REPRO_SCHEDULER" in os.environ:
    import distributed
    with distributed.Client(os.environ["REPRO_SCHEDULER"]) as client:
        assert client.gather(client.map(abs, range(-4, 0))) == [4, 3, 2, 1]
"""


@pytest.mark.nightly
def test_more_notebooks_than_dask_workers_give_the_same_results(project):
    pytest.importorskip("distributed", reason="needs the extra dask")
    names = [f"tiresias/fig0{number}_x" for number in range(5)]
    for name in names:
        project.add(name, before=GIVES_WORK)
    project.cli("run", "--all", "--out", "local")
    done = project.cli("run", "--all", "-j", "2", "--backend", "dask", "--out", "dask")
    assert "10 of 10 claims reproduced" in done.stdout and "failed" not in done.stdout
    for name in names:
        assert contents(project.folder(name, "local")) == contents(project.folder(name, "dask"))
        local, dask = (without_wall(project.result(name, out)) for out in ("local", "dask"))
        assert local == dask


@pytest.fixture
def dask(project):
    """Start a scheduler and two workers as commands; return its address and the workers."""
    pytest.importorskip("distributed", reason="needs the extra dask")
    started = []

    def start(*words):
        log = (project.root / f"dask{len(started)}.log").open("w")
        command = [sys.executable, "-m", "dask", *words]
        started.append(subprocess.Popen(command, env=project.env, stdout=log, stderr=log))
        return started[-1]

    where = project.root / "scheduler.json"
    start("scheduler", "--scheduler-file", where, "--port", "0", "--no-dashboard")
    wait_for(where)
    address = json.loads(where.read_text())["address"]
    one = ("worker", address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    yield address, [start(*one), start(*one)]
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.slow
def test_a_killed_dask_worker_loses_nothing(project, dask):
    address, workers = dask
    names = [f"tiresias/fig0{number}_x" for number in range(4)]
    for name in names:
        # the worker runs a copy of the project
        wait = (
            "import multiprocessing, os, time; forked = multiprocessing.parent_process(); "
            "worker = forked.pid if forked else os.getppid(); "
            f"open(f'{project.root}/notebooks/tiresias/on-{{worker}}', 'w').close(); time.sleep(2)"
        )
        project.add(name, before=wait)
    batch = project.start("run", "--all", "--backend", "dask", "--scheduler", address)
    wait_for(project.root / f"notebooks/tiresias/on-{workers[0].pid}")
    workers[0].kill()
    out, err = batch.communicate(timeout=120)
    assert batch.returncode == 0, out + err
    assert all(f"{name}: 2 of 2 claims reproduced" in out for name in names)
    project.cli("run", "--all", "--out", "local")
    for name in names:
        assert contents(project.folder(name)) == contents(project.folder(name, "local"))
        assert "fingerprint" in project.result(name)
    assert "4 of 4 figures are current" in project.cli("run", "--all").stdout


@pytest.mark.slow
def test_a_dask_scheduler_without_workers_is_named(project, dask):
    address, workers = dask
    for worker in workers:
        worker.kill()
    project.add("tiresias/fig01_one")
    words = ("run", "--all", "--backend", "dask", "--scheduler", address)
    assert f"start some with `dask worker {address}`" in project.cli(*words, code=2).stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "nothing to run"),
        (["tiresias/fig09"], "unknown figure 'tiresias/fig09'"),
        (["--paper", "muri"], "unknown paper 'muri'"),
        (["--all", "--paper", "tiresias"], "give either --paper or --all"),
        (["--all", "--profile", "full"], "--profile cannot be 'full' (accepted: quick, paper)"),
        (["--all", "--backend", "ray"], "--backend cannot be 'ray' (accepted: local, dask)"),
        (["--all", "--scheduler", "tcp://x:1"], "--scheduler needs --backend dask"),
        (["--all", "-j", "0"], "-j 0: give a number"),
        (["--all", "-p", "sede", "1"], "has no parameter 'sede'; did you mean 'seed'"),
        (["--all", "-p", "profile", "paper"], "use --profile instead"),
        (["--all", "-p", "seed"], "-p takes NAME VALUE"),
        (["--all", "-p", "seeds", "[1"], "value '[1'"),
        (["--all", "--nope"], "No such option"),
    ],
)
def test_wrong_use_is_one_line_and_nothing_runs(project, words, message):
    project.add("tiresias/fig01_one")
    done = project.cli("run", *words, code=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1 and done.stdout == ""
    assert not (project.root / "build").exists()


def test_one_notebook_makes_several_figures(project):
    ids = ("tiresias/fig01_a", "tiresias/fig02_b")
    for figure_id in ids:
        project.add(figure_id, notebook="shared")
    project.cli("run", "--all", "-j", "2")
    for figure_id in ids:
        assert project.result(figure_id)["id"] == figure_id
        assert "fingerprint" in project.result(figure_id)
        copy = (project.root / f"build/notebooks/{figure_id}.ipynb").read_text()
        assert f'figure_id = \\"{figure_id}\\"' in copy
    page = (project.root / "build/figures/index.html").read_text()
    assert page.count('href="../../notebooks/tiresias/shared.ipynb"') == 2
    assert "2 of 2 figures are current" in project.cli("run", "--all").stdout
    refused = project.cli("run", "tiresias/shared", code=2)
    assert refused.stderr == f"repro: 'tiresias/shared' is the notebook of {', '.join(ids)}; " + (
        "name a figure\n"
    )


def test_a_shared_notebook_that_makes_another_figure_fails(project):
    for figure_id in ("tiresias/fig02_b", "tiresias/fig01_a"):
        project.add(figure_id, notebook="shared")
    path = project.root / "notebooks/tiresias/shared.ipynb"
    path.write_text(path.read_text().replace("figure(figure_id", "figure('tiresias/fig01_a'"))
    done = project.cli("run", "fig02", code=1)
    line = "the notebook ended without saving tiresias/fig02_b; it must call figure(figure_id)"
    assert line in done.stdout


BREAKS = {
    "misspelt": ("params/gavel/tab02_bad.yaml:4:show: unknown key", "shows:", "show:"),
    "orphan": ("has no params/gavel/tab02_bad.yaml", None, None),
    "untagged": ("no cell is tagged `parameters`", '"parameters"', '"other"'),
    "no notebook": ("not a notebook", None, "<html>"),
}


@pytest.mark.parametrize("how", BREAKS)
def test_a_broken_figure_fails_alone_in_a_batch_and_is_refused_by_name(project, how):
    line, old, new = BREAKS[how]
    project.add("tiresias/fig01_one")
    project.add("gavel/tab02_bad")
    yaml = "params/gavel/tab02_bad.yaml"
    notebook = "notebooks/gavel/tab02_bad.ipynb"
    path = project.root / (yaml if how in ("misspelt", "orphan") else notebook)
    if how == "orphan":
        path.unlink()
    else:
        path.write_text(path.read_text().replace(old, new) if old else new)
    refused = project.cli("run", "gavel/tab02", code=2)
    assert line in refused.stderr and len(refused.stderr.splitlines()) == 1
    assert refused.stdout == "" and not (project.root / "build").exists()
    assert "Traceback" in project.cli("run", "gavel/tab02", "--debug", code=1).stderr

    done = project.cli("run", "--all", code=1)
    assert [
        one
        for one in done.stdout.splitlines()
        if "gavel/tab02_bad: failed: " in one and line in one
    ]
    assert "tiresias/fig01_one: 2 of 2 claims reproduced" in done.stdout
    assert "1 figure failed" in done.stdout
    assert "1 of 2 figures are current" in project.cli("run", "--all", code=1).stdout
    project.add("gavel/tab02_bad")
    project.cli("run", "--all")
    assert "failed" not in project.cli("check").stdout


def test_a_failed_figure_tells_where_to_look(project):
    project.add("tiresias/fig01_bad", after='raise ValueError("a\\x1b]0;b\\x07")')
    places = "build/figures/tiresias/fig01_bad/error.json and build/notebooks/tiresias/fig01_bad"
    done = project.cli("run", "--all", code=1)
    lines = done.stdout.splitlines()
    # on a slow machine lines of progress come before
    (first, second), *_ = [pair for pair in pairwise(lines) if pair[0].startswith("[1/1] ")]
    assert r"fig01_bad: failed in cell [4]: ValueError: a\x1b]0;b\x07 (" in first
    assert second == f"  see {places}.ipynb; --debug shows the traceback here"
    for place in places.split(" and "):
        assert list(project.root.glob(f"{place}*"))
    debugged = project.cli("run", "--all", "--debug", code=1).stdout
    assert f"  see {places}.ipynb\n" in debugged
    assert "Traceback (most recent call last)" in debugged and "raise ValueError" in debugged


def test_a_terminal_shows_what_runs_and_how_far_it_is(project):
    project.add(
        "tiresias/fig01_one",
        before="import time\nfrom repro.figures.progress import write_progress\n"
        "write_progress(12, 231)\ntime.sleep(2)",
    )
    ours, theirs = os.openpty()
    environment = project.env | {"TERM": "xterm", "COLUMNS": "100"}
    batch = subprocess.Popen(
        project.command("run", "--all"),
        env=environment,
        cwd=project.root,
        stdout=theirs,
    )
    os.close(theirs)
    shown = b""
    # Linux tells the end of a terminal by an error.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 65536):
            shown += chunk
    assert batch.wait() == 0
    text = shown.decode()
    assert "12/231 simulations" in text and text.count("tiresias/fig01_one") > 3
    assert text.split("\n")[-3].rstrip().endswith("2 of 2 claims reproduced")
