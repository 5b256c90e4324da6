"""Works that write files, in an older and a newer version, and what their files may hold."""

from __future__ import annotations

from pathlib import Path

from processes import contents

from repro.batch.on_worker import Returned, write_returned
from repro.batch.task import DONE, Outcome, Task
from repro.cli import main
from repro.figures import saved, sweep
from repro.figures.params import FigureEntry
from repro.testing import small_trace
from tools.mutate import run as mutate

JOBS = "job_id,submit_time,duration,num_gpus\n0,0,100,1\n1,1,10,1\n2,7199,200,1\n3,7200,20,1\n"
#: Policies of the older and of the newer run.
POLICIES = {"old": "yarn-cs", "new": "srtf"}
STEM = "fig01_x"


def command(*words):
    return main([str(word) for word in words])


def simulate(folder, version):
    """``repro simulate --out``."""
    trace = folder.parent / "jobs.csv"
    words = ("--trace", trace, "--cluster", "1x1", "--policy", POLICIES[version])
    return command("simulate", *words, "--out", folder / "jobs.csv")


def convert(folder, version):
    """``repro trace convert --out``."""
    trace = folder.parent / "jobs.csv"
    if version == "old":
        trace.write_text(JOBS.replace("20,1", "21,1"))
    words = (trace, "--format", "repro", "--out", folder / "trace.csv")
    return command("trace", "convert", *words)


def compare(folder, version):
    """``repro compare --out``."""
    names = f"{POLICIES[version]},las-2d"
    words = ("--trace", folder.parent / "jobs.csv", "--cluster", "1x1", "--policies", names)
    return command("compare", *words, "--windows", "2x1h", "-j", "1", "--out", folder / "out")


def result_of(version):
    """Files of a figure, and its ``result.json``."""
    files = {
        f"{STEM}.{suffix}": f"{version} {suffix}\n".encode() * 9999 for suffix in ("svg", "csv")
    }
    if version == "old":
        files[f"{STEM}.points.csv"] = b"x\n1\n"
    sums = {name: saved.checksum(content) for name, content in files.items()}
    about = dict.fromkeys(("title", "reference", "shows"), "")
    result = {
        **{"id": f"tiresias/{STEM}", **about, "profile": "quick", "seed": 0, "stand_in": None},
        **{"params": {"version": version}, "data": [], "versions": {}, "verdict": None},
        **{"claims": [], "points": [], "fingerprint": version, "files": sums},
    }
    return files, result


def figure(folder, version):
    """Files of a figure, which its notebook writes."""
    saved.write_files(folder, STEM, *result_of(version))


def returned(folder, version):
    """Files of a figure that a dask worker sent."""
    files, result = result_of(version)
    entry = FigureEntry(f"tiresias/{STEM}", folder)
    task = Task(entry, {"profile": "quick", "out": str(folder)}, "", folder)
    sent = {**files, saved.RESULT: saved.to_json(result)}
    notebook = {".ipynb": version.encode(), ".html": version.encode()}
    write_returned(task, Returned(Outcome(task.id, DONE), sent, notebook))


def cached(folder, version):
    """A simulation, kept in the cache."""
    case = sweep.Case(small_trace(), "1x4", POLICIES[version]).resolved()
    result = sweep.outcome(case)
    (folder.parent / version).write_text(result.jobs.to_csv())


def mutants(folder, version):
    """Lines of results of ``make mutate``."""
    path = folder / "results.jsonl"
    known = {line["id"] for line in mutate.read_lines(path)}
    for number in range(20 if version == "new" else 10):
        if number not in known:
            mutate._append(path, {"id": number, "text": "x" * 99})


#: Works whose cache lies below the folder that is looked at.
WITH_CACHE = (cached,)
WORKS = [simulate, convert, compare, figure, returned, cached, mutants]


def title(work):
    """Name of a work in the table of trials."""
    return work.__doc__.rstrip(".").replace("``", "`")


def use_cache(monkeypatch, work, folder, outside):
    """Let the cache lie in the folder that is looked at, or outside of it."""
    where = folder if work in WITH_CACHE else outside
    monkeypatch.setenv("REPRO_CACHE_DIR", str(where / "cache"))


def comparable(work, folder):
    """Files that are the same in every run; entries of the cache have measured times."""
    files = contents(folder)
    if work is cached:
        return {name: content for name, content in files.items() if "/" not in name}
    return files


def check_whole(work, folder, old, new):
    """No file of a name that is not hidden has a part of its content."""
    for name, content in comparable(work, folder).items():
        if Path(name).name.startswith("."):
            continue
        if work is mutants:
            # a line may be cut off, and is written again
            assert new[name].startswith(content)
        else:
            assert content in (old.get(name), new.get(name)), name
    result, damage = saved.read_result(folder)
    assert not damage
    if result and not saved.damaged(folder, STEM, result):
        assert result == result_of(result["fingerprint"])[1]
