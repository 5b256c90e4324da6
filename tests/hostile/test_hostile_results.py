"""Damaged result files: each is named as damaged, and a damaged cache entry is computed again."""

from __future__ import annotations

import json
import pickle
import zlib
from pathlib import Path

import pytest
from doors import NO_FILES, check, parameters, refused

from repro.base.errors import CacheWarning, ReproError
from repro.batch.reference import Reference
from repro.figures import cache, saved

ANSI = "\x1b[31mred"
CLAIM = {
    "id": "gain",
    "kind": "number",
    "what": "gain",
    "published": 5.5,
    "ours": 5.4,
    "tolerance": "10 %",
    "source": "section 5",
    "certainty": "paper",
    "verdict": "reproduced",
    "stand_in": False,
}
POINT = {
    "series": "las",
    "x": 1.0,
    "quantity": "JCT",
    "published": 10.0,
    "ours": 10.1,
    "unit": "h",
    "distance": 0.01,
    "certainty": "artifact",
    "data": "author's",
    "rules": "paper",
}
RESULT = {
    "id": "tiresias/fig10",
    "title": "Times",
    "reference": "Fig 10",
    "shows": "times",
    "profile": "paper",
    "seed": 0,
    "stand_in": None,
    "notes": [],
    "params": {},
    "data": [{"name": "philly", "kind": "public"}],
    "versions": {"python": "3.11"},
    "verdict": "reproduced",
    "wall_s": 3.2,
    "claims": [CLAIM],
    "points": [POINT],
}
REFERENCE = {
    "format": "repro reference 1",
    "about": "values",
    "profile": "quick",
    "digits": 6,
    "tolerance": {"relative": 1e-6, "absolute": 1e-9},
    "figures": {
        "tiresias/fig10": [
            {
                "data": "public",
                "stand_in": None,
                "seed": 0,
                "verdict": "reproduced",
                "claims": {"gain": {"verdict": "reproduced", "ours": 5.4}},
                "points": [
                    {"series": "a", "quantity": "b", "rules": "c", "x": [1.0], "ours": [2.0]}
                ],
            }
        ]
    },
}
WRONG = {
    "null": None,
    "true": True,
    "fraction": 1.5,
    "text": "qqqq",
    "terminal escape": ANSI,
    "list": [[]],
    "mapping": {"a": {"b": []}},
}
ALL = set(WRONG)
NO_TEXT = ALL - {"text", "terminal escape"}
#: Keys of ``result.json`` -> faults that are no value of it.
IN_RESULT = {
    **{(name,): NO_TEXT for name in ("id", "title", "reference", "shows", "profile")},
    ("seed",): ALL,
    ("stand_in",): NO_TEXT - {"null"},
    ("notes",): ALL,
    ("params",): ALL - {"mapping"},
    ("data",): ALL,
    ("data", 0): ALL,
    ("data", 0, "name"): NO_TEXT,
    ("versions",): ALL,
    ("verdict",): ALL - {"null"},
    ("wall_s",): ALL - {"null", "fraction"},
    ("claims",): ALL,
    ("claims", 0): ALL,
    ("claims", 0, "id"): NO_TEXT,
    ("claims", 0, "kind"): ALL,
    ("claims", 0, "verdict"): ALL,
    ("claims", 0, "tolerance"): NO_TEXT,
    ("points",): ALL,
    ("points", 0): ALL,
    ("points", 0, "series"): NO_TEXT,
    ("points", 0, "published"): ALL - {"fraction"},
    ("points", 0, "certainty"): ALL,
    ("points", 0, "data"): ALL,
    ("points", 0, "distance"): ALL - {"null", "fraction"},
}
FIGURE = ("figures", "tiresias/fig10")
IN_REFERENCE = {
    ("format",): ALL,
    ("about",): NO_TEXT,
    ("profile",): NO_TEXT,
    ("digits",): ALL,
    ("tolerance",): ALL,
    ("tolerance", "relative"): ALL - {"fraction"},
    ("figures",): ALL,
    FIGURE: ALL,
    (*FIGURE, 0): ALL,
    (*FIGURE, 0, "data"): ALL,
    (*FIGURE, 0, "seed"): ALL,
    (*FIGURE, 0, "stand_in"): NO_TEXT - {"null"},
    (*FIGURE, 0, "verdict"): NO_TEXT - {"null"},
    (*FIGURE, 0, "claims"): ALL,
    (*FIGURE, 0, "claims", "gain"): ALL,
    (*FIGURE, 0, "claims", "gain", "verdict"): ALL,
    (*FIGURE, 0, "points"): ALL,
    (*FIGURE, 0, "points", 0, "series"): NO_TEXT,
    (*FIGURE, 0, "points", 0, "x"): ALL,
}


def changed(content, keys, value):
    """Copy of a content with another value below ``keys``."""
    content = json.loads(json.dumps(content))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return json.dumps(content)


def read_result():
    content, fault = saved.read_result(Path("."))
    if fault:
        raise ReproError(fault)
    assert content


def read_reference():
    Reference(Path("quick.json"))


def not_json(good):
    """Contents that are no JSON document, by fault."""
    return {
        "empty": "",
        "blanks": " \n",
        "cut short": good[: len(good) // 2],
        "two documents": good + good,
        "trailing comma": f"{good[:-1]},}}",
        "single quotes": good.replace('"', "'"),
        "comment": f"// a\n{good}",
        "null": "null",
        "a number": "1",
        "a list": "[]",
        "a text": '"a"',
        "empty object": "{}",
        "20,000 levels": "[" * 20_000,
        "merge conflict": f"<<<<<<< HEAD\n{good}\n=======\n{good}\n>>>>>>> b\n",
        "HTML page": "<!DOCTYPE html>",
        "pickle": pickle.dumps(RESULT),
        "UTF-16": good.encode("utf-16"),
        "Latin-1 byte": good.encode() + b"\xe9",
        "NUL": f"{good}\0",
        "number of 5,000 digits": good.replace('"seed": 0', f'"seed": {"9" * 5000}'),
        "infinite seed": good.replace('"seed": 0', '"seed": Infinity'),
        **NO_FILES,
    }


def all_cases():
    for name, read, good, places in (
        ("result.json", read_result, RESULT, IN_RESULT),
        ("quick.json", read_reference, REFERENCE, IN_REFERENCE),
    ):
        for keys, faults in places.items():
            for fault, value in WRONG.items():
                if fault in faults:
                    files = {name: changed(good, keys, value)}
                    key = str(keys[0])
                    yield refused(
                        f"{name}, {'.'.join(map(str, keys))}: {fault}", read, name, key, **files
                    )
        for key in good:
            if key in ("notes", "wall_s"):
                continue
            content = {other: value for other, value in good.items() if other != key}
            yield refused(f"{name}, {key}: missing", read, name, key, **{name: json.dumps(content)})
        for fault, content in not_json(json.dumps(good)).items():
            if name == "result.json" and fault in ("dangling link", "link to itself"):
                # a folder without a result has no fault
                continue
            yield refused(f"{name}: {fault}", read, name, **{name: content})


CASES = list(all_cases())


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_result(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)


def test_good_files_are_read(tmp_path, monkeypatch):
    """The refusals are those of the faults."""
    monkeypatch.chdir(tmp_path)
    for mark in ("", "\ufeff"):
        Path("result.json").write_text(mark + json.dumps(RESULT), "utf-8")
        Path("quick.json").write_text(mark + json.dumps(REFERENCE), "utf-8")
        read_result()
        read_reference()


ENTRY = zlib.compress(pickle.dumps(cache.Entry(1, 0.5)))
#: Damaged entries of the cache, by fault.
ENTRIES = {
    "empty": b"",
    "cut short": ENTRY[:-5],
    "one bit flipped": ENTRY[:10] + bytes([ENTRY[10] ^ 1]) + ENTRY[11:],
    "no compression": pickle.dumps(cache.Entry(1, 0.5)),
    "no pickle": zlib.compress(b"hello"),
    "another object": zlib.compress(pickle.dumps({"result": 1})),
    "null": zlib.compress(pickle.dumps(None)),
    "unknown class": zlib.compress(b"cnowhere\nNothing\n."),
    "unknown module": zlib.compress(b"cno_such_module\nThing\n(tR."),
    "text": b"{}",
    "zeros": bytes(1000),
    "zip": b"PK\x03\x04" + bytes(100),
    "nested 100,000 deep": zlib.compress(b"(" * 10**5 + b"."),
}


@pytest.mark.parametrize("fault", ENTRIES)
def test_a_damaged_cache_entry_is_removed_and_computed_again(fault, tmp_path):
    path = tmp_path / "entry.pkl"
    path.write_bytes(ENTRIES[fault])
    with pytest.warns(CacheWarning, match="damaged cache entry") as caught:
        assert cache._read(path) is None
    (line,) = [str(warning.message) for warning in caught]
    assert "\n" not in line
    assert not path.exists()


def test_a_good_cache_entry_is_read(tmp_path):
    (tmp_path / "entry").write_bytes(ENTRY)
    assert cache._read(tmp_path / "entry") == cache.Entry(1, 0.5)
