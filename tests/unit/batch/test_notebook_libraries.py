"""The libraries of notebooks are imported without a grammar that takes a second to build."""

import importlib.util
import subprocess
import sys

import pytest

GRAMMAR = "rfc3987_syntax"


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec(GRAMMAR) is None, reason=f"{GRAMMAR} is not installed")
def test_the_grammar_is_left_out_and_can_be_imported_later():
    code = (
        f"import sys; import repro.batch.kernel; print('{GRAMMAR}' in sys.modules); "
        f"import {GRAMMAR}; print('{GRAMMAR}' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
