"""docs/sixth_paper.md: its example runs, and the modules that it builds on exist."""

import pkgutil
import re
from pathlib import Path

import pytest

from repro.model.policy import policies

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "sixth_paper.md").read_text()
CODE = re.findall(r"^```python\n(.*?)^```$", TEXT, re.M | re.S)


@pytest.fixture
def example():
    """Names of the example after it ran; its policy is forgotten again."""
    yield run(CODE[0])
    del policies._items["whole-nodes"]


def run(text):
    names = {"__name__": "example"}
    exec(compile(text, "sixth_paper.md", "exec", dont_inherit=True), names)
    return names


def test_a_job_gets_a_node_every_minute_and_pays_for_a_move(example):
    spans = example["intervals"]
    assert set(spans["gpus"]) == {4.0}
    assert set(spans["start"]) == {0.0, 60.0}
    rate = 2**0.9
    second = spans[(spans["job_id"] == "b") & (spans["start"] == 60.0)]
    # b left node 1 for node 0 and resumes after 30 s
    assert second["end"].item() == pytest.approx(60 + 30 + 500 / rate - 60)


def test_a_job_does_its_second_half_at_half_the_rate():
    jobs = run(CODE[1])["result"].jobs
    assert (jobs["end_time"] - jobs["start_time"]).tolist() == (1.5 * jobs["duration"]).tolist()


def test_what_it_builds_on_exists():
    for path in ("policies/liquid/grouping.py", "model/rules.py", "plot/looks.csv"):
        assert path in TEXT and (ROOT / "repro" / path).is_file()
    pkgutil.resolve_name("repro.perf.overhead.CheckpointOverhead")
