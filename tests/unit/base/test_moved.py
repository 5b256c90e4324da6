"""Names of the last release: they work, warn, and mean the same objects."""

import importlib
import subprocess
import sys

import pytest

from repro.base.moved import MOVED, new_name


@pytest.mark.parametrize("old", sorted(MOVED))
def test_an_old_name_is_the_module_of_the_new_one(old, monkeypatch):
    monkeypatch.delitem(sys.modules, old, raising=False)
    with pytest.warns(DeprecationWarning, match=f"{old} is now {MOVED[old]}"):
        module = importlib.import_module(old)
    assert module is importlib.import_module(MOVED[old])
    assert module.__name__ == module.__spec__.name == MOVED[old]


@pytest.mark.parametrize(
    "line",
    [
        "from repro.core.policy import Order, register",
        "from repro.core.decision import RunSet",
        "from repro.cluster.spec import Cluster",
        "from repro.sim.simulate import simulate",
        "import repro.errors",
        "from repro.course.grade import Limits, grade",
        "from repro.course.release import release",
    ],
)
def test_imports_of_the_last_release_work(line):
    program = f"{line}\nimport repro.model.policy, sys\nprint(repro.model.policy.__name__)"
    done = subprocess.run(
        [sys.executable, "-W", "always::DeprecationWarning", "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "repro.model.policy\n"
    assert "the next release removes the old name" in done.stderr


def test_other_names_did_not_move():
    assert new_name("repro.corex") is None
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("repro.nowhere")
