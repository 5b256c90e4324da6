"""Parameter files with one fault each, and parameters of notebooks of another form."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
import yaml
from doors import NO_FILES, check, parameters, refused

from repro.figures import params
from repro.figures.claims import ClaimFields

ANSI = "\x1b[31mred"
GOOD = {
    "title": "Small",
    "paper": "muri",
    "reference": "Fig 1",
    "shows": "a small thing",
    "inputs": {
        "cluster": "1x4",
        "seeds": [0, 1],
        "load": 0.5,
        "jobs": 10,
        "exact": True,
        "weights": [0.5, 1.5],
        "options": {"a": 1},
    },
    "profiles": {"quick": {"seeds": [0]}},
    "claims": [
        {
            "id": "jobs",
            "kind": "number",
            "what": "finished jobs",
            "published": 6,
            "accept": {"rel": 0.1},
            "source": "section 1",
            "certainty": "paper",
        },
        {
            "id": "big",
            "kind": "order",
            "what": "something large",
            "published": "> 100",
            "relation": {"gt": 100},
            "source": "section 2",
            "certainty": "paper",
        },
    ],
}
WRONG = {
    "number": 4,
    "not a number": float("nan"),
    "infinite": float("inf"),
    "negative": -1,
    "huge": 10**30,
    "true": True,
    "list": [[1]],
    "mapping": {"a": {"b": 1}},
    "empty text": "",
    "word": "qqqq",
    "terminal escape": ANSI,
    "two lines": "a\nb",
}
TEXTS = {"number", "not a number", "infinite", "negative", "huge", "true", "list", "mapping"}
BLANK = TEXTS | {"empty text", "two lines"}
#: Key of the file -> faults that are no value of it.
PLACES = {
    ("title",): BLANK,
    ("paper",): TEXTS,
    ("reference",): BLANK,
    ("shows",): BLANK,
    ("notebook",): TEXTS | {"empty text", "terminal escape", "two lines"},
    ("kind",): set(WRONG),
    ("marks",): TEXTS,
    ("inputs",): set(WRONG) - {"mapping"},
    ("profiles",): set(WRONG),
    ("profiles", "quick"): set(WRONG) - {"empty text"},
    ("stand_in",): TEXTS,
    ("data",): set(WRONG),
    ("origin",): set(WRONG),
    ("fitted_on",): TEXTS,
    ("unknown",): set(WRONG),
    ("timed",): set(WRONG) - {"true"},
    ("claims",): set(WRONG),
    ("claims", 0): set(WRONG),
    ("claims", 0, "id"): TEXTS | {"empty text"},
    ("claims", 0, "kind"): set(WRONG),
    ("claims", 0, "what"): TEXTS | {"empty text"},
    ("claims", 0, "published"): {"not a number", "infinite", "mapping", "empty text"},
    ("claims", 0, "source"): TEXTS | {"empty text"},
    ("claims", 0, "certainty"): set(WRONG),
    ("claims", 0, "accept"): set(WRONG),
    ("claims", 0, "accept", "rel"): set(WRONG) - {"number"},
    ("claims", 1, "relation"): set(WRONG),
    ("claims", 1, "relation", "gt"): set(WRONG) - {"number", "negative", "huge"},
}
REQUIRED = [("title",), ("paper",), ("reference",), ("shows",)]
REQUIRED += [("claims", 0, name) for name in ("id", "kind", "what", "source", "certainty")]


def changed(keys, value):
    """Good file with another value below ``keys``; None removes the key."""
    content = yaml.safe_load(yaml.safe_dump(GOOD))
    inner = content
    for key in keys[:-1]:
        inner = inner[key]
    if value is None:
        del inner[keys[-1]]
    else:
        inner[keys[-1]] = value
    return yaml.safe_dump(content, sort_keys=False, allow_unicode=False)


def load():
    return params.load(Path("fig.yaml"))


def broken(text):
    """Texts that are no parameter file, by fault."""
    return {
        "empty": "",
        "comment only": "# none",
        "a list": "- 1",
        "a word": "word",
        "two documents": f"{text}---\n{text}",
        "unknown key": f"{text}nonsense: 1\n",
        "key in capitals": f"{text}TITLE: a\n",
        "Cyrillic key": f"{text}titlе: a\n",
        "key twice": f"{text}title: again\n",
        "tab": f"{text}\tkind: figure\n",
        "open bracket": f"{text}marks: [\n",
        "open quote": f'{text}marks: "a\n',
        "alias of nothing": f"{text}marks: *a\n",
        "alias of itself": f"{text}stand_in: &a [*a]\n",
        "Python object": f"{text}marks: !!python/object/apply:os.system ['touch harmed']\n",
        "own tag": f"{text}marks: !gpu a\n",
        "NUL": f"{text}\0",
        "control character": f"{text}# \x01\n",
        "no such character": f'{text}marks: "\\UFFFFFFFF"\n',
        "lone surrogate": f'{text}marks: "\\ud800"\n',
        "terminal escape in a text": f'{text}marks: "\\e[31m"\n',
        "leading zero": text.replace("jobs: 10", "jobs: 010"),
        "beyond a float": text.replace("jobs: 10", "jobs: 1e999"),
        "100 levels": f"{text}marks: {'[' * 100}{']' * 100}\n",
        "20,000 levels": f"{text}marks: {'[' * 20_000}\n",
        "200,000 values": f"{text}marks: [{'1,' * 200_000}]\n",
        "key a list": f"{text}? [a]\n: 1\n",
        "billion laughs": text
        + "a0: &a0 [l, l, l, l, l, l, l, l, l, l]\n"
        + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 10)),
    }


#: Input -> values of another form.
FORMS = {
    "cluster": {"number": 4, "list": ["1x4"], "true": True, "mapping": {"a": 1}, "bytes": b"1x4"},
    "seeds": {"number": 4, "text": "0,1", "texts": ["a"], "fractions": [0.5], "empty": []},
    "load": {"text": "high", "list": [0.5], "true": True, "NaN": float("nan"), "complex": 1j},
    "jobs": {"text": "ten", "fraction": 1.5, "true": True, "NaN": float("nan"), "list": [1]},
    "exact": {"text": "yes", "number": 1, "list": [True], "mapping": {}, "fraction": 0.5},
    "weights": {"text": "1", "number": 1.0, "texts": ["a"], "empty": [], "NaN": [float("nan")]},
    "options": {"text": "a=1", "number": 1, "list": [1], "true": True, "set": {1}},
}


def merge(profile="quick", **overrides):
    return lambda: params.FigureSpec.model_validate(GOOD).merged(profile, overrides)


def all_cases():
    for keys, faults in PLACES.items():
        for fault, value in WRONG.items():
            if fault in faults:
                name = ".".join(map(str, keys))
                files = {"fig.yaml": changed(keys, value)}
                key = keys[0].removesuffix("s")
                yield refused(f"{name}: {fault}", load, "fig.yaml:", key, **files)
    for keys in REQUIRED:
        name = ".".join(map(str, keys))
        files = {"fig.yaml": changed(keys, None)}
        yield refused(f"{name}: missing", load, "fig.yaml:", str(keys[-1]), **files)
    text = yaml.safe_dump(GOOD, sort_keys=False)
    for fault, content in broken(text).items():
        yield refused(f"file: {fault}", load, "fig.yaml:", **{"fig.yaml": content})
    contents = {
        "UTF-16": text.encode("utf-16"),
        "Latin-1 byte": text.encode() + b"# \xe9",
        "pickle": pickle.dumps(GOOD),
        "too large": text.encode() + b"#" * (2 << 20),
        **NO_FILES,
    }
    for fault, content in contents.items():
        yield refused(f"file: {fault}", load, "fig.yaml", **{"fig.yaml": content})
    for name, faults in FORMS.items():
        for fault, value in faults.items():
            yield refused(f"notebook, {name}: {fault}", merge(**{name: value}), name)
    for fault, name in {"misspelt": "sedes", "escape": ANSI, "Python": "__class__"}.items():
        yield refused(f"notebook, parameter: {fault}", merge(**{name: 1}), "unknown parameter")
    for fault, name in {"misspelt": "quik", "empty": "", "escape": ANSI, "path": "../.."}.items():
        yield refused(f"notebook, profile: {fault}", merge(name), "unknown profile")


CASES = list(all_cases())


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_parameter(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_good_file_is_read(tmp_path, mark, end):
    """The refusals are those of the faults; marks and line ends of Windows are none."""
    path = tmp_path / "fig.yaml"
    path.write_bytes(mark + yaml.safe_dump(GOOD).replace("\n", end).encode())
    assert params.load(path).title == "Small"
    assert set(ClaimFields.model_fields) >= {"id", "kind"}
