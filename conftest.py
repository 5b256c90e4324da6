"""Examples in docstrings print the same on slow machines; some modules need PyTorch."""

import math

import pytest

from repro.base.extras import is_installed
from repro.figures import progress

#: Modules that import PyTorch or Pillow, which only extra measure brings.
_TRAINING = ("image_networks", "inputs", "networks", "other_networks", "staged", "training")
collect_ignore = []
if not (is_installed("torch") and is_installed("PIL")):
    collect_ignore = [f"repro/measure/{name}.py" for name in (*_TRAINING, "worker_requests")]


@pytest.fixture(autouse=True)
def no_progress_in_examples(request, monkeypatch):
    """Print no line of progress into an example; a slow simulation would print one after 10 s."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(progress, "_LINE_EVERY_S", math.inf)
