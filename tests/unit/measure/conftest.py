"""Modules of `repro.measure` that import PyTorch, with stand-ins for it."""

from __future__ import annotations

import importlib.util
import sys
import types
from pathlib import Path

import pytest

import repro.measure

#: Modules that the modules under test import, with the names that they take from them.
STAND_INS = {
    "torch": {"Tensor": object, "from_numpy": lambda values: values},
    "repro.measure.inputs": {"Batch": object},
    "repro.measure.other_networks": {"FRAMES": 4, "ITEMS": 1, "USERS": 1, "VOCABULARY": {}},
    "repro.measure.staged": {"StagedTraining": object},
    "repro.measure.training": {"Training": object, "timed": None},
}


@pytest.fixture
def without_pytorch(monkeypatch):
    """Function that loads a module of `repro.measure` on stand-ins, whether or not PyTorch is here.

    The loaded module is not the one that an import finds.
    """

    def load(name):
        for stand_in, names in STAND_INS.items():
            monkeypatch.setitem(sys.modules, stand_in, types.SimpleNamespace(**names))
        path = Path(repro.measure.__file__).with_name(f"{name}.py")
        spec = importlib.util.spec_from_file_location(f"{name}_on_stand_ins", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load
