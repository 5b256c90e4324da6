"""Examples in docstrings print the same on slow machines."""

import math

import pytest

from repro.figures import progress


@pytest.fixture(autouse=True)
def no_progress_in_examples(request, monkeypatch):
    """Print no line of progress into an example; a slow simulation would print one after 10 s."""
    if isinstance(request.node, pytest.DoctestItem):
        monkeypatch.setattr(progress, "_LINE_EVERY_S", math.inf)
