"""Frames passed to `repro.simulate` with one fault each: refused with one line of the package."""

from __future__ import annotations

import datetime
import decimal

import numpy as np
import pandas as pd
import pytest
from doors import check, parameters, refused

import repro
from repro.trace.schema import COLUMNS, REQUIRED

ANSI = "\x1b[31mred"
#: A value of each column that is accepted.
GOOD = {
    **{name: 1.0 for name, column in COLUMNS.items() if column.value_type == "float"},
    **{name: 1 for name, column in COLUMNS.items() if column.value_type == "int"},
    **{name: "x" for name, column in COLUMNS.items() if column.value_type == "text"},
}
DATES = {
    "date": pd.Timestamp("2020-01-01"),
    "date with an offset": pd.Timestamp("2020-01-01", tz="UTC"),
    "time span": pd.Timedelta("1s"),
    "period": pd.Period("2020-01"),
    "date of Python": datetime.date(2020, 1, 1),
    "span of Python": datetime.timedelta(seconds=1),
}
OBJECTS = {
    "list": [1],
    "tuple": (1, 2),
    "mapping": {"a": 1},
    "set": {1},
    "bytes": b"1",
    "complex": 1j,
    "class": int,
    "function": len,
    "array": np.arange(2),
    "frame": pd.DataFrame(),
}
NO_NUMBER = {
    "word": "two",
    "full-width digits": "１２",
    "terminal escape": ANSI,
    "underscore": "1_000",
    "truth value": True,
    "NumPy truth value": np.True_,
    "infinite": float("inf"),
    "minus infinite": float("-inf"),
    "NumPy infinite": np.float32("inf"),
    "400 digits": 10**400,
    "decimal not a number": decimal.Decimal("sNaN"),
    "decimal infinite": decimal.Decimal("Infinity"),
    "formula": "=1+1",
}
MISSING = {"None": None, "NaN": float("nan"), "pd.NA": pd.NA, "NaT": pd.NaT}
NO_TEXT = {
    "terminal escape": ANSI,
    "reversed text": "a\u202eb",
    "zero width": "a\u200bb",
    "NUL": "a\0b",
    "lone surrogate": "a\ud800b",
    "line end": "a\nb",
    "1,001 characters": "x" * 1001,
}


def frame(**columns):
    jobs = {"job_id": [1, 2], "submit_time": [0.0, 5.0], "duration": [60.0, 30.0]}
    jobs["num_gpus"] = [1, 2]
    return pd.DataFrame({**jobs, **columns})


def with_value(name, value):
    """Frame whose second job has a value in a column, of dtype object."""
    values = np.empty(2, object)
    values[0] = 7 if name == "job_id" else GOOD[name]
    values[1] = value
    return frame(**{name: pd.Series(values)})


def simulate(jobs, cluster="1x4", policy="srtf", **options):
    return lambda: repro.simulate(jobs, cluster, policy, **options)


def outside(column):
    """Numbers beyond the limits of a column, by fault."""
    faults = {}
    if np.isfinite(column.low):
        faults["below"] = column.low - 1 if column.low >= 0 else column.low * 2
        if column.low_excluded:
            faults["at the excluded limit"] = column.low
    if np.isfinite(column.high):
        faults["above"] = column.high * 2
    if column.value_type == "int":
        faults |= {"fraction": 1.5, "beyond 2^53": 2.0**60}
    return faults


def column_cases():
    for name, column in COLUMNS.items():
        if column.value_type == "id":
            faults = DATES | OBJECTS | NO_TEXT | MISSING
            faults |= {"fraction": 1.5, "infinite": float("inf"), "truth value": True}
            faults |= {"empty": "", "blanks": "  ", "used twice": 7}
        elif column.value_type == "text":
            faults = DATES | NO_TEXT
        else:
            faults = DATES | OBJECTS | NO_NUMBER | outside(column)
            if column.required or column.value_type == "int":
                faults |= MISSING
        for fault, value in faults.items():
            yield refused(f"{name}: {fault}", simulate(with_value(name, value)), name)


def shape_cases():
    for name in REQUIRED:
        jobs = frame()
        yield refused(f"without {name}", simulate(jobs.drop(columns=name)), name, "missing column")
        twice = pd.concat([jobs, jobs[[name]]], axis=1)
        yield refused(f"{name} twice", simulate(twice), name, "appears twice")
        capital = jobs.rename(columns={name: name.upper()})
        yield refused(f"{name} in capitals", simulate(capital), name, "missing column")
        escaped = jobs.rename(columns={name: f"{name}{ANSI}"})
        yield refused(f"{name} with a terminal escape", simulate(escaped), name, "missing column")
        number = jobs.rename(columns={name: 0})
        yield refused(f"{name} is called 0", simulate(number), name, "missing column")
    yield refused("no jobs", simulate(frame().iloc[:0]), "no jobs")
    yield refused("no columns", simulate(pd.DataFrame()), "missing column")
    levels = frame()
    levels.columns = pd.MultiIndex.from_product([["a"], levels.columns])
    yield refused("columns of two levels", simulate(levels), "column")


class Strange:
    """Object of no use."""

    def __repr__(self):
        return f"{ANSI}\nStrange"


NO_FRAMES = {
    "None": None,
    "number": 3,
    "not a number": float("nan"),
    "truth value": True,
    "bytes": b"jobs",
    "list of mappings": [{"job_id": 1}],
    "mapping": {"job_id": [1]},
    "array": np.zeros((2, 4)),
    "series": pd.Series([1, 2]),
    "set": {1},
    "function": len,
    "class": pd.DataFrame,
    "strange object": Strange(),
    "empty text": "",
    "blanks": " ",
    "terminal escape": ANSI,
    "line end": "a\nb",
    "NUL": "a\0b",
    "lone surrogate": "a\ud800b",
    "5,000 characters": "x" * 5000,
    "unknown name": "philly-synht",
    "path out of the folder": "../../../../etc/passwd",
    "system folder": "/proc/self",
    "endless device": "/dev/zero",
}
NO_CLUSTERS = {
    name: value for name, value in NO_FRAMES.items() if name not in ("path out of the folder",)
}
NO_POLICIES = {
    name: value for name, value in NO_FRAMES.items() if name not in ("path out of the folder",)
}
#: Option of `repro.simulate` -> values that it refuses.
NO_OPTIONS = {
    "seed": {"negative": -1, "fraction": 1.5, "word": "x", "NaN": float("nan"), "None": None},
    "interval": {
        "negative": -1.0,
        "zero": 0.0,
        "NaN": float("nan"),
        "infinite": float("inf"),
        "word": "x",
        "list": [1],
        "truth value": True,
    },
    "rules": {"unknown": "papr", "None": None, "number": 1, "terminal escape": ANSI, "list": []},
    "placement": {"unknown": "yran", "number": 1, "terminal escape": ANSI, "list": [1]},
    "predict": {"negative": -1, "fraction": 1.5, "word": "x", "NaN": float("nan"), "list": [1]},
    "slowdown": {
        "below 1": 0.5,
        "negative": -1.0,
        "NaN": float("nan"),
        "infinite": float("inf"),
        "word": "x",
        "list": [1],
        "unknown level": {"moon": 2.0},
    },
    "overhead": {
        "negative": -1.0,
        "NaN": float("nan"),
        "infinite": float("inf"),
        "word": "x",
        "list": [1],
    },
    "failures": {"word": "x", "number": 1, "list": [1], "unknown key": {"moon": 1}},
    "types": {"unknown": "x", "None": None, "number": 1, "terminal escape": ANSI},
}


def argument_cases():
    for fault, value in NO_FRAMES.items():
        yield refused(f"trace: {fault}", simulate(value))
    for fault, value in NO_CLUSTERS.items():
        yield refused(f"cluster: {fault}", simulate(frame(), value))
    for fault, value in NO_POLICIES.items():
        yield refused(f"policy: {fault}", simulate(frame(), policy=value))
    for option, faults in NO_OPTIONS.items():
        for fault, value in faults.items():
            yield refused(f"option {option}: {fault}", simulate(frame(), **{option: value}))


CASES = [*column_cases(), *shape_cases(), *argument_cases()]


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_frame(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)


@pytest.mark.parametrize("name", [*GOOD, "job_id"])
def test_a_good_value_of_each_column_is_accepted(name):
    """The refusals are those of the faults."""
    value = GOOD.get(name, 8)
    assert repro.simulate(with_value(name, value), "1x4", "srtf").summary()["n_finished"] == 2
