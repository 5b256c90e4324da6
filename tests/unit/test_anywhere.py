"""Container, Binder and devcontainer files name what exists; issue forms ask unique questions."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif(
    not (ROOT / "pyproject.toml").exists(), reason="not run from a checkout"
)


def dockerfile() -> list[list[str]]:
    """Instructions of the Dockerfile, split at blanks, comments left out."""
    text = (ROOT / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split() for line in text.splitlines() if line and not line.startswith("#")]


def targets(text: str) -> set[str]:
    """First target of each call of make: at the start of a line or of code, or after RUN."""
    return set(re.findall(r"(?:^|`|RUN )make ([\w./-]+)", text, re.MULTILINE))


def existing_targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text().replace("$(VENV)", ".venv")
    return set(re.findall(r"^([.\w/-]+):", makefile, re.MULTILINE))


def test_the_container_runs_figures_as_an_ordinary_user_with_its_cache_in_a_volume():
    instructions = dockerfile()
    users = [words[1] for words in instructions if words[0] == "USER"]
    assert users[-1] == "1000:1000"
    after_last_root = instructions[max(i for i, w in enumerate(instructions) if w[1] == "0:0") :]
    assert ["VOLUME", "/cache"] in after_last_root
    assert ["COPY", "--chown=1000:1000", ".", "."] in after_last_root
    assert json.loads(" ".join(instructions[-1][1:])) == ["make", "figures"]
    settings = [" ".join(words) for words in instructions if words[0] == "ENV"]
    assert any("REPRO_CACHE_DIR=/cache" in line for line in settings)


def test_every_way_takes_the_python_of_the_committed_figures():
    made_with = json.loads((ROOT / "figures/gavel/fig08_las_single/result.json").read_text())[
        "versions"
    ]["python"]
    python = ".".join(made_with.split(".")[:2])
    assert dockerfile()[0][:2] == ["FROM", f"python:{python}-slim-bookworm"]
    assert (ROOT / "binder/runtime.txt").read_text() == f"python-{python}\n"


def test_binder_installs_the_locked_versions_of_extras_that_exist():
    lock, own = (ROOT / "binder/requirements.txt").read_text().splitlines()
    assert (ROOT / "binder" / lock.removeprefix("-c ")).resolve() == ROOT / "constraints.txt"
    extras = re.fullmatch(r"-e \.\[(.+)\]", own)[1].split(",")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert set(extras) <= project["optional-dependencies"].keys()
    post_build = ROOT / "binder/postBuild"
    assert os.access(post_build, os.X_OK)
    assert subprocess.run(["bash", "-n", post_build], check=False).returncode == 0


def test_the_devcontainer_builds_a_stage_and_calls_a_target_that_exist():
    content = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    build = content["build"]
    assert (ROOT / ".devcontainer" / build["dockerfile"]).resolve() == ROOT / "Dockerfile"
    assert (ROOT / ".devcontainer" / build["context"]).resolve() == ROOT
    stages = [words[-1] for words in dockerfile() if words[0] == "FROM" and "AS" in words]
    assert build["target"] in stages
    assert any(content["remoteUser"] in words for words in dockerfile() if "useradd" in words)
    assert targets(content["postCreateCommand"]) == {".venv/.test"} <= existing_targets()


@pytest.mark.parametrize(
    "page", ["Dockerfile", "docs/anywhere.md", "docs/crate.md", "CONTRIBUTING.md"]
)
def test_pages_name_targets_that_exist(page):
    assert targets((ROOT / page).read_text()) <= existing_targets()


def test_the_build_context_has_what_an_installation_reads():
    ignored = (ROOT / ".dockerignore").read_text().split()
    needed = ["Makefile", "constraints.txt", "pyproject.toml", "README.md", "LICENSE", "LICENSES"]
    needed += ["repro", "notebooks", "params", "traces", "figures", "course", "docs"]
    assert not set(needed) & set(ignored)
    assert {".git", ".venv", "build"} <= set(ignored)
    for name in needed:
        assert (ROOT / name).exists(), name


@pytest.mark.parametrize("name", ["number", "trace", "policy"])
def test_issue_forms_ask_each_question_once(name):
    form = yaml.safe_load((ROOT / f".github/ISSUE_TEMPLATE/{name}.yml").read_text())
    assert {"name", "description", "body"} <= form.keys()
    ids = [item["id"] for item in form["body"]]
    labels = [item["attributes"]["label"] for item in form["body"]]
    assert len(set(ids)) == len(ids) and len(set(labels)) == len(labels)
    assert any(item.get("validations", {}).get("required") for item in form["body"])


def test_pages_for_contributors_lead_to_files_that_exist():
    for page in ("CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md"):
        text = (ROOT / page).read_text()
        for link in re.findall(r"\]\(([^)#]+)", text):
            assert (ROOT / link).exists(), (page, link)
