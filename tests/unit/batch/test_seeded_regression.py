"""A wrong sign in a policy turns the commands of CI red, and they name the figure."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[3]
FIGURE = "tiresias/fig07_worked_example"
POLICY = "repro/policies/baselines/known_durations.py"
#: Key of SRSF, and the same with the other sign.
SIGNS = (
    "return view.gpus(job) * view.remaining(job)",
    "return -view.gpus(job) * view.remaining(job)",
)


def test_a_wrong_sign_in_a_policy_is_seen_with_its_figure(tmp_path):
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "repro", tmp_path / "repro", ignore=ignored)
    for name in (f"params/{FIGURE}.yaml", f"notebooks/{FIGURE}.ipynb", "traces/registry.csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    own = {"REPRO_HOME": tmp_path, "PYTHONPATH": tmp_path, "REPRO_CACHE_DIR": tmp_path / "cache"}
    env = {**os.environ, **{name: str(folder) for name, folder in own.items()}}

    def repro(*words):
        command = [sys.executable, "-m", "repro.cli", *words]
        return subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)

    def run_and_compare():
        done = repro("run", "--all", "--profile", "quick")
        assert done.returncode == 0, done.stderr
        return repro("check", "--against", str(ROOT / "figures/quick.json"))

    right = run_and_compare()
    assert right.returncode == 0, right.stdout
    assert "0 worse, 0 better" in right.stdout

    policy = tmp_path / POLICY
    source = policy.read_text()
    assert SIGNS[0] in source
    policy.write_text(source.replace(*SIGNS))
    wrong = run_and_compare()
    assert wrong.returncode == 1
    assert f"{FIGURE}  worse: claim srsf_slots is missed, was reproduced" in wrong.stdout
