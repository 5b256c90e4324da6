"""Compiled loops: kept machine code is used again, and never older than any source it is from."""

import ast
import importlib
import os
import pkgutil
import subprocess
import sys
import time

import pytest

import repro
from repro.base import compiled, paths
from repro.figures import cache

# left out by `make check`
pytestmark = pytest.mark.slow

CALLEE = """\
from repro.base.compiled import njit
from pack.numbers import FACTOR

@njit()
def scaled(x):
    return FACTOR * x
"""
CALLER = """\
from repro.base.compiled import njit
from .callee import (
    scaled,
)

@njit(error_model="numpy")
def answer(x):
    return scaled(x) + 1
"""
SHOW = """\
from pack.caller import answer
print(answer(20), sum(answer.kernel.stats.cache_hits.values()))
"""


@pytest.fixture
def pack(tmp_path):
    """A package whose kernel calls one of another file, which uses a number of a third."""
    folder = tmp_path / "pack"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "numbers.py").write_text("FACTOR = 2\n")
    (folder / "callee.py").write_text(CALLEE)
    (folder / "caller.py").write_text(CALLER)
    return folder


def shown(pack, code=SHOW, **env):
    """Run code in a process of its own: what it printed, and its warnings."""
    kept = str(pack.parent / "kept")
    env = {**os.environ, "NUMBA_CACHE_DIR": kept, "REPRO_PYTHON_S": "0", **env}
    env["PYTHONPATH"] = os.pathsep.join([str(pack.parent), *sys.path])
    # Python takes the byte code of a file for current if size and second of change are equal.
    env["PYTHONDONTWRITEBYTECODE"] = "1"
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


WATCH = """\
from repro.base.compiled import compile_watch
from pack.caller import answer
told = []
with compile_watch(told.append) as outer:
    with compile_watch() as watch:
        answer(20)
        first = watch.seconds
        answer(20)
print(told, watch.names == outer.names == told, first > 0, watch.seconds == first)
print(abs(outer.seconds - watch.seconds) < 0.01)
"""


def test_what_compiles_is_told_and_its_seconds_are_counted(pack):
    told = "['pack.caller.answer'] True True True\nTrue"
    assert shown(pack, WATCH)[0] == told
    # kept code is loaded, which takes a moment too
    assert shown(pack, WATCH)[0] == told.replace("'pack.caller.answer'", "")


def test_without_a_compiled_loop_no_second_is_counted_and_numba_stays_away(pack):
    code = (
        "import sys\nfrom repro.base.compiled import compile_watch\n"
        "with compile_watch() as watch: pass\n"
        "print(watch.seconds, watch.names, 'numba' in sys.modules)\n"
    )
    assert shown(pack, code)[0] == "0.0 [] False"


def test_loops_of_others_count_where_numba_is_there(pack):
    code = (
        "import numba\nfrom repro.base.compiled import compile_watch\n"
        "@numba.njit\ndef own(x): return x\n"
        "with compile_watch() as watch: own(1)\n"
        "print(watch.seconds > 0, watch.names)\n"
        "with compile_watch() as watch: own(1)\n"
        "print(watch.seconds, watch.names)\n"
    )
    assert shown(pack, code)[0] == "True ['__main__.own']\n0.0 []"


def test_seconds_are_those_of_the_thread_that_watches(pack):
    code = (
        "import threading\nfrom repro.base.compiled import compile_watch\n"
        "from pack.caller import answer\n"
        "with compile_watch() as watch:\n"
        "    other = threading.Thread(target=answer, args=(20,))\n"
        "    other.start(); other.join()\n"
        "print(watch.seconds, watch.names)\n"
    )
    assert shown(pack, code)[0] == "0.0 []"


OWNERS = """\
import numpy as np
from repro.base.compiled import njit

@njit(allocates=True)
def made(n):
    return np.zeros(n)

@njit()
def made_without(n):
    return np.zeros(n)

@njit()
def passed_on(array):
    return array

@njit()
def part(array):
    return array[1:]

@njit()
def received(n):
    return made(n)[0]

@njit()
def summed(array):
    total = 0.0
    for value in array[1:]:
        total += value
    return total

print(summed(made(3)))
for function, value in ((made_without, 2), (passed_on, made(3)), (part, made(3)), (received, 3)):
    try:
        function(value)
    except Exception as error:
        text = str(error) + "".join(getattr(error, "__notes__", ()))
        print(function.name, "allocates=True" in text)
"""


def test_a_function_that_owns_arrays_must_say_so(pack):
    said = shown(pack, OWNERS)[0].splitlines()
    owners = ("made_without", "passed_on", "part", "received")
    assert said == ["0.0", *(f"{name} True" for name in owners)]


REFERENCES = """\
import pandas as pd
import repro
from repro.engine.select import queues
trace = pd.DataFrame({"job_id": [0, 1], "submit_time": 0.0, "duration": 5.0, "num_gpus": 1})
for policy in ("srtf", "yarn-cs"):
    repro.simulate(trace, "1x1", policy)
leaves = (queues._precedes, queues._merged, queues.insert, queues.remove)
for function in (*leaves, queues.select, queues.simulate_events):
    for code in function.kernel.inspect_llvm().values():
        print("NRT_incref" in code or "NRT_decref" in code)
print(all("NRT" in code for code in queues.best_waiting.kernel.inspect_llvm().values()))
"""


def test_small_functions_of_event_loops_count_no_references(pack):
    """Counting took six sevenths of the time of a loop over the jobs of Philly."""
    # numba shows no code that it read from a file, so the process has an empty cache
    *leaves, owner = shown(pack, REFERENCES)[0].splitlines()
    assert len(leaves) >= 6 and set(leaves) == {"False"}
    assert owner == "True"


def test_a_loop_that_cannot_be_compiled_leaves_the_watch_sound(pack):
    code = (
        "from repro.base.compiled import compile_watch, njit\n"
        "from pack.caller import answer\n"
        "with compile_watch() as watch:\n"
        "    try: answer('x')\n"
        "    except Exception: pass\n"
        "    before = watch.seconds\n"
        "    answer(20)\n"
        "    between = watch.seconds\n"
        "    sum(range(10**6))\n"
        "print(0 < before < between == watch.seconds, len(watch.names))\n"
    )
    assert shown(pack, code)[0] == "True 2"


def edit(file, old, new):
    text = file.read_text()
    assert text.count(old) == 1
    file.write_text(text.replace(old, new))


def test_a_change_of_a_callee_or_of_a_number_is_seen_at_once(pack):
    """Numba itself looks at the caller's file only, and would go on with the old code."""
    assert shown(pack)[0] == "41 0"
    assert shown(pack)[0] == "41 1"  # kept
    edit(pack / "callee.py", "FACTOR * x", "FACTOR * x + 100")
    assert shown(pack)[0] == "141 0"
    edit(pack / "numbers.py", "2", "3")
    assert shown(pack)[0] == "161 0"
    edit(pack / "numbers.py", "3", "2")
    edit(pack / "callee.py", "FACTOR * x + 100", "FACTOR * x")
    assert shown(pack)[0] == "41 1"
    assert not list(pack.rglob("*.nbi")), "beside the sources, where any change goes unnoticed"


def test_a_change_while_a_process_runs_is_not_taken_for_what_it_runs(pack):
    numbers = pack / "numbers.py"
    # The number is read before it changes, the kernel is made after.
    early = f"import repro, pack.numbers\nopen({str(numbers)!r}, 'w').write('FACTOR = 5\\n')\n"
    printed, said = shown(pack, early + SHOW)
    assert printed == "41 0" and "numbers.py changed since this process began" in said
    assert shown(pack)[0] == "101 0"


def test_code_lies_in_the_cache_folder_unless_numba_is_told_another(pack, tmp_path):
    own = {"REPRO_CACHE_DIR": str(tmp_path / "own"), "NUMBA_CACHE_DIR": ""}
    shown(pack, **own)
    assert shown(pack, **own)[0] == "41 1"
    assert list((tmp_path / "own" / "compiled").rglob("*answer*.nbi"))
    assert not (pack.parent / "kept").exists()


def test_functions_of_others_are_kept_where_they_were(pack):
    (pack / "other.py").write_text(
        "import numba\n@numba.njit(cache=True)\ndef other(x):\n    return x\n"
    )
    code = SHOW + "from pack.other import other\nprint(other.stats.cache_path)"
    printed, _ = shown(pack, code, NUMBA_CACHE_DIR="", REPRO_CACHE_DIR=str(pack.parent / "own"))
    assert printed.splitlines()[1] == str(pack / "__pycache__")


def test_without_a_folder_everything_is_compiled_anew_after_one_warning(pack, tmp_path):
    (tmp_path / "file").write_text("")
    for _ in range(2):
        printed, said = shown(pack, NUMBA_CACHE_DIR=str(tmp_path / "file"))
        assert printed == "41 0"
        assert said.count("CacheWarning: compiled functions are not cached") == 1
    assert not list(pack.rglob("*.nbi"))


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="needs permissions of files")
def test_a_folder_others_can_write_to_is_not_used(pack, tmp_path):
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    printed, said = shown(pack, NUMBA_CACHE_DIR=str(open_to_all))
    assert printed == "41 0" and not list(open_to_all.iterdir())
    assert said.count("others can write to it") == 1
    assert "set NUMBA_CACHE_DIR to a folder of your own" in said


def test_damaged_code_is_compiled_again(pack):
    shown(pack)
    for suffix in ("nbi", "nbc"):
        for file in (pack.parent / "kept").rglob(f"*.{suffix}"):
            file.write_bytes(file.read_bytes()[:50])
        assert shown(pack)[0] == "41 0"
        assert shown(pack)[0] == "41 1"


def test_a_full_disk_costs_the_code_not_the_run(pack):
    full = (
        "import errno\n"
        "from numba.core.caching import FunctionCache\n"
        "def save(*args): raise OSError(errno.ENOSPC, 'No space left on device')\n"
        "FunctionCache.save_overload = save\n"
    )
    printed, said = shown(pack, full + SHOW)
    assert printed == "41 0" and said.count("CacheWarning: compiled functions are not cached") == 1


def test_code_nobody_used_for_a_month_is_removed_when_new_code_comes(pack):
    base = pack.parent / "kept" / "compiled"
    for name, days in (("0" * 16, 31), ("1" * 16, 29), ("of-others", 99)):
        (base / name).mkdir(parents=True)
        when = time.time() - days * 24 * 3600
        os.utime(base / name, (when, when))
    base.chmod(0o700)
    shown(pack)
    names = {folder.name for folder in base.iterdir()}
    assert {"1" * 16, "of-others"} <= names and "0" * 16 not in names


def modules():
    """Every module of the package, by name, with its file."""
    found = pkgutil.walk_packages(repro.__path__, "repro.")
    return {one.name: compiled._module_file(one.name) for one in found}


def imported(path):
    """What a parser finds in import statements that run: module and name, none in plain ones."""
    tree = ast.parse(path.read_bytes())
    annotating = [
        node
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    ]
    never = {id(inner) for node in annotating for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if id(node) in never:
            continue
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)


def test_every_kernel_is_compiled_by_our_njit():
    users = {
        name
        for name, path in modules().items()
        if any(module.partition(".")[0] == "numba" for module, _ in imported(path))
    }
    assert users == {"repro.base.compiled"}


def test_import_statements_are_found_without_a_parser():
    checked = 0
    for name, path in modules().items():
        found = set(compiled._imports(name, path))
        for module, inner in imported(path):
            below = f"{module}.{inner}"
            assert (below if inner and compiled._module_file(below) else module) in found, name
            checked += 1
    assert checked > 1000


@pytest.mark.parametrize("names", ["*", "\\\n    answer"])
def test_a_module_whose_names_are_not_told_is_imported_too(tmp_path, names):
    path = tmp_path / "policy.py"
    path.write_text(f"import numpy\nfrom mine.helper import {names}\n")
    assert set(compiled._imports("mine.policy", path)) == {"numpy", "mine.helper"}


def test_the_simulation_cache_is_keyed_by_all_that_a_simulation_imports():
    ahead = ["repro.engine.simulate", "repro.figures.sweep"]
    for package in ("repro.policies", "repro.placement", "repro.trace.formats"):
        inner = importlib.import_module(package).__path__
        ahead += [one.name for one in pkgutil.walk_packages(inner, f"{package}.")]
    # the package itself only names what is public
    seen = {"repro"}
    missing = []
    kept = set(cache._sources())
    while ahead:
        name = ahead.pop()
        path = compiled._module_file(name)
        if name in seen or path is None:
            continue
        seen.add(name)
        missing += [name] if path not in kept else []
        ahead += [one for one in compiled._imports(name, path) if one.startswith("repro")]
    assert not missing
    assert len(seen) > 100


def test_every_named_source_exists():
    assert [part for part in cache.SIMULATION_SOURCES if not (paths.PACKAGE / part).exists()] == []


def test_pictures_make_no_measure_of_a_simulation_old():
    for name in ("pcs.runs", "liquid.schedulers", "liquid.estimation", "gavel.series"):
        behind = compiled.sources(f"repro.papers.{name}")
        assert "repro.figures.data" in behind
        assert not [one for one in behind if one.startswith("repro.plot")], name


def test_fast_math_is_refused():
    with pytest.raises(ValueError, match="depend on the CPU"):
        compiled.njit(fastmath={"reassoc"})
