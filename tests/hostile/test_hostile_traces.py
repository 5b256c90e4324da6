"""Traces of every format with one fault each: refused in one line that says where."""

from __future__ import annotations

import gzip
import json
import pickle

import pytest
from doors import NO_FILES, Case, check, parameters

from repro.trace.formats import FORMATS

ANSI = "\x1b[31mred"
#: Columns by kind: number, whole number, date, id, text; a value that is not read has no kind.
#: Format -> (delimiter, {column: kind}, rows).
TABLES = {
    "repro": (
        ",",
        {
            "job_id": "id",
            "submit_time": "number",
            "duration": "positive",
            "num_gpus": "count",
            "user": "text",
            "gpu_share": "share",
            "priority_weight": "share",
            "min_gpus": "least",
            "model": "text",
        },
        ["a,0,60,1,ann,1,1,1,vgg16", "b,5,30,2,bob,0.5,2,1,vgg16", "c,9,90,1,eve,1,1,1,vgg16"],
    ),
    "tiresias": (
        ",",
        {
            "job_id": "id",
            "num_gpu": "count",
            "submit_time": "number",
            "duration": "positive",
            "model_name": "text",
            "iterations": "gap number",
        },
        ["1,1,0,60,vgg16,10", "2,2,5,30,vgg16,20", "3,1,9,90,vgg16,30"],
    ),
    "muri": (
        ",",
        {
            "job_id": "id",
            "num_gpu": "count",
            "submit_time": "number",
            "duration": "positive",
            "iteration_time": "gap number",
            "resource_time_0": "gap number",
            "resource_time_1": "gap number",
            "resource_time_2": "gap number",
        },
        ["1,1,0,6000,100,10,80,10", "2,2,500,3000,100,10,80,10", "3,1,900,9000,100,10,80,10"],
    ),
    "pcs": (
        ",",
        {"app_id": "id", "service": "positive", "num_jobs": "count", "sleep_time": "number"},
        ["1,600,1,0", "2,300,2,5", "3,900,1,4"],
    ),
    "philly": (
        ",",
        {"timestamp": "date", "duration": "positive", "num_gpus": "count", "cluster": "text"},
        ["2017-10-09 07:00:00,60,1,x", "2017-10-09 07:01:00,30,2,x", "2017-10-09 07:02:00,90,1,y"],
    ),
    "helios": (
        ",",
        {
            "job_id": "id",
            "gpu_num": "no gap",
            "submit_time": "log date",
            "start_time": "log date",
            "end_time": "log date",
            "user": "text",
        },
        [
            "1,1,2020-06-01 10:00:00,2020-06-01 10:00:00,2020-06-01 11:00:00,ann",
            "2,2,2020-06-01 10:05:00,2020-06-01 10:06:00,2020-06-01 12:00:00,bob",
            "3,1,2020-06-01 10:10:00,2020-06-01 10:10:00,2020-06-01 13:00:00,eve",
        ],
    ),
    "acme": (
        ",",
        {
            "job_id": "id",
            "gpu_num": "no gap",
            "type": "",
            "state": "",
            "submit_time": "log date",
            "start_time": "log date",
            "end_time": "log date",
            "queue": "",
        },
        [
            "1,1,SFT,COMPLETED,2023-06-01 10:00:00,2023-06-01 10:00:00,2023-06-01 11:00:00,0",
            "2,2,SFT,COMPLETED,2023-06-01 10:05:00,2023-06-01 10:06:00,2023-06-01 12:00:00,60",
            "3,1,SFT,COMPLETED,2023-06-01 10:10:00,2023-06-01 10:10:00,2023-06-01 13:00:00,0",
        ],
    ),
    "alibaba-openb": (
        ",",
        {
            "name": "id",
            "num_gpu": "no gap",
            "gpu_milli": "no gap",
            "creation_time": "time",
            "deletion_time": "time",
            "scheduled_time": "time",
            "cpu_milli": "time",
        },
        ["p1,1,1000,0,600,0,4000", "p2,1,500,5,700,6,4000", "p3,2,1000,9,900,9,4000"],
    ),
    "alibaba-pai": (
        ",",
        {
            "job_id": "id",
            "submit_time": "number",
            "duration": "no gap",
            "num_inst": "count",
            "num_gpu": "no gap",
            "num_cpu": "time",
            "user": "text",
        },
        ["1,0,60,1,100,400,ann", "2,5,30,1,50,400,bob", "3,9,90,2,100,400,eve"],
    ),
    "elasticflow": (
        ",",
        {
            "job_id": "id",
            "submission_time": "number",
            "duration": "positive",
            "num_gpu": "count",
        },
        ["1,0,60,1", "2,5,30,2", "3,9,90,1"],
    ),
    "liquid": (
        ",",
        {
            "job": "",
            "model": "",
            "batch_size": "gap number",
            "num_batches": "gap number",
            "num_ps": "no gap",
            "num_workers": "no gap",
        },
        ["one,vgg16,12,250,1,2", "two,vgg16,12,250,1,2", "six,vgg16,12,250,0,1"],
    ),
    "slurm": (
        "|",
        {
            "JobID": "id",
            "Submit": "log date",
            "Start": "log date",
            "State": "",
            "AllocTRES": "resources",
            "Elapsed": "span",
            "User": "text",
            "Timelimit": "span",
        },
        [
            "1|2024-03-01T10:00:00|2024-03-01T10:00:00|COMPLETED|cpu=4,gres/gpu=1|01:00:00|ann|2:00:00",
            "2|2024-03-01T10:05:00|2024-03-01T10:06:00|COMPLETED|cpu=4,gres/gpu=2|02:00:00|bob|3:00:00",
            "3|2024-03-01T10:10:00|2024-03-01T10:10:00|COMPLETED|cpu=4,gres/gpu=1|00:30:00|eve|2:00:00",
        ],
    ),
    "swf": (
        " ",
        {
            **dict.fromkeys(["job", "submit", "wait", "run_time"], "field"),
            **dict.fromkeys(["allocated", "used_cpu", "used_memory"], ""),
            **dict.fromkeys(["processors", "time_limit"], "field"),
            "memory": "",
            "status": "field",
            **dict.fromkeys(["user", "group", "app", "queue", "partition", "before", "think"], ""),
        },
        [
            "1 0 0 60 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1",
            "2 5 1 30 2 -1 -1 2 100 -1 1 1 1 1 1 1 -1 -1",
            "3 9 0 90 1 -1 -1 1 100 -1 1 1 1 1 1 1 -1 -1",
        ],
    ),
    "gavel": (
        "\t",
        {
            "job_type": "model",
            "command": "",
            "working_dir": "",
            "steps_arg": "",
            "needs_data_dir": "",
            "steps": "positive",
            "scale_factor": "count",
            "priority_weight": "share",
            "slo": "gap number",
            "arrival": "number",
        },
        [
            "A3C\tmain.py\trl\t--n\t0\t800\t1\t1\t-1\t0",
            "A3C\tmain.py\trl\t--n\t0\t900\t1\t1\t-1\t30",
            "A3C\tmain.py\trl\t--n\t0\t700\t1\t1\t-1\t60",
        ],
    ),
}
HEADLESS = {"swf", "gavel"}
SPEEDS = "job_type,scale_factor,gpu_type,steps_per_second\nA3C,1,v100,8\n"

#: Values that are no number, in every column of numbers: name of the fault -> text.
NO_NUMBER = {
    "word": "two",
    "hexadecimal": "0x10",
    "underscore": "1_000",
    "full-width digits": "１２",
    "Arabic digits": "٣",
    "two points": "1.2.3",
    "two signs": "--1",
    "formula": "=1+1",
    "terminal escape": "\x1b[31m1",
    "unit": "5s",
    "clock": "00:01:40",
    "truth value": "true",
    "infinite": "inf",
    "minus infinite": "-inf",
    "overflow": "1e999",
    "reversed text": "\u202e12",
    "zero width": "1\u200b2",
    "list": "[1]",
}
NO_DATE = {
    "word": "yesterday",
    "month 13": "2020-13-01 00:00:00",
    "day 32": "2020-01-32 00:00:00",
    "hour 25": "2020-01-01 25:00:00",
    "year 1": "0001-01-01 00:00:00",
    "year 9999": "9999-01-01 00:00:00",
    "seconds since 1970": "1600000000",
    "milliseconds since 1970": "1600000000000",
    "slashes": "01/02/2020",
    "Arabic digits": "٢٠٢٠-01-01 00:00:00",
    "terminal escape": "\x1b[2J2020-01-01 00:00:00",
    "formula": "=NOW()",
    "offset among dates without": "2020-01-01 00:00:00+08:00",
    "reversed text": "\u202e2020-01-01 00:00:00",
    "infinite": "inf",
}
NO_TEXT = {
    "terminal escape": ANSI,
    "reversed text": "abc\u202edef",
    "zero width": "a\u200bb",
    "byte-order mark inside": "a\ufeffb",
    "1,001 characters": "x" * 1001,
    "line separator": "a\u2028b",
    "next line": "a\x85b",
    "bell": "a\x07",
}
NO_ID = {**NO_TEXT, "empty": "", "blanks": "  "}
NO_SPAN = {
    "word": "long",
    "minus": "-1:00:00",
    "Arabic digits": "٣:00:00",
    "formula": "=1",
    "terminal escape": "\x1b[1m1:00:00",
    "infinite": "inf",
    "two points": "1..00",
}
NO_RESOURCES = {
    "word": "gres/gpu=two",
    "minus": "gres/gpu=-1",
    "fraction": "gres/gpu=1.5",
    "huge": "gres/gpu=99999999999999999999",
    "infinite": "gres/gpu=inf",
    "Arabic digits": "gres/gpu=٣",
    "terminal escape": "gres/gpu=\x1b[1m1",
}
_NEGATIVE = {"negative": "-1"}
_GAP = {"empty": "", "not a number": "nan"}
_HUGE = {"huge": "1e300"}
FAULTS = {
    "number": NO_NUMBER | _NEGATIVE | _GAP | _HUGE,
    "positive": NO_NUMBER | _NEGATIVE | _GAP | _HUGE | {"zero": "0"},
    "count": NO_NUMBER | _NEGATIVE | _GAP | _HUGE | {"zero": "0", "fraction": "1.5"},
    "least": NO_NUMBER | _NEGATIVE | _GAP | _HUGE | {"fraction": "1.5"},
    "share": NO_NUMBER | _NEGATIVE | _HUGE | {"zero": "0"},
    "no gap": NO_NUMBER | _NEGATIVE | _GAP | _HUGE,
    "time": NO_NUMBER | _NEGATIVE | _HUGE,
    "gap number": NO_NUMBER | {"negative": "-2"} | _HUGE,
    "field": NO_NUMBER | {"negative": "-2", "huge": "1e300"},
    "date": NO_DATE | {"empty": "", "missing": "None"},
    "log date": NO_DATE,
    "id": NO_ID,
    "text": NO_TEXT,
    "model": NO_TEXT | {"empty": "", "unknown": "A3D"},
    "span": NO_SPAN,
    "resources": NO_RESOURCES,
    "": {},
}
#: Columns that a file may lack (README of docs/formats).
OPTIONAL = {
    *("user", "gpu_share", "priority_weight", "min_gpus", "model_name", "iterations", "cluster"),
    *("cpu_milli", "num_cpu", "User", "Timelimit"),
}


def command(format):
    options = ["--set", "throughputs=speeds.csv"] if format == "gavel" else []
    return ("trace", "info", f"t.{format}", "--format", format, *options)


def text(format, header=None, rows=None, end="\n"):
    """Text of a table of a format."""
    delimiter, columns, good = TABLES[format]
    lines = list(good if rows is None else rows)
    if format not in HEADLESS:
        lines.insert(0, delimiter.join(columns) if header is None else header)
    return end.join([*lines, ""])


def files(format, content):
    speeds = {"speeds.csv": SPEEDS} if format == "gavel" else {}
    return {f"t.{format}": content, **speeds}


def cell_cases():
    """Each column with each fault of its kind, in the second row."""
    for format, (delimiter, columns, rows) in TABLES.items():
        line = 2 if format in HEADLESS else 3
        for position, (name, kind) in enumerate(columns.items()):
            for fault, value in FAULTS[kind].items():
                if format == "swf" and not value.strip():
                    continue
                cells = rows[1].split(delimiter)
                cells[position] = value
                damaged = [rows[0], delimiter.join(cells), rows[2]]
                yield Case(
                    f"{format}, {name}: {fault}",
                    command(format),
                    (f"t.{format}:{line}:{'' if format == 'swf' else name}",),
                    files(format, text(format, rows=damaged)),
                )


def header_cases():
    """Each required column missing, twice, in another case, with look-alikes or escapes."""
    for format, (delimiter, columns, _) in TABLES.items():
        if format in HEADLESS:
            continue
        names = list(columns)
        for position, name in enumerate(names):
            headers = {}
            if name not in OPTIONAL and not (format == "repro" and name == "model"):
                letter = next(letter for letter in "aeocpi" if letter in name.lower())
                swaps = str.maketrans("aeocpiAECOPI", "аеосріАЕСОРІ")
                headers |= {
                    "missing": [*names[:position], "other", *names[position + 1 :]],
                    "other case": [*names[:position], name.swapcase(), *names[position + 1 :]],
                    f"Cyrillic {letter}": [
                        *names[:position],
                        name.translate(swaps),
                        *names[position + 1 :],
                    ],
                    "zero width": [*names[:position], f"{name}\u200b", *names[position + 1 :]],
                }
            for fault, header in headers.items():
                yield Case(
                    f"{format}, header {name}: {fault}",
                    command(format),
                    (f"t.{format}:1:", "missing column", name),
                    files(format, text(format, header=delimiter.join(header))),
                )
            twice = delimiter.join([*names, name])
            rows = [
                f"{row}{delimiter}{row.split(delimiter)[position]}" for row in TABLES[format][2]
            ]
            yield Case(
                f"{format}, header {name}: twice",
                command(format),
                (f"t.{format}:1:{name}", "appears twice"),
                files(format, text(format, header=twice, rows=rows)),
            )


def row_cases():
    """Rows with a wrong number of fields, open quotes, ids that are used twice."""
    for format, (delimiter, columns, rows) in TABLES.items():
        line = 2 if format in HEADLESS else 3
        cells = rows[1].split(delimiter)
        ids = [position for position, kind in enumerate(columns.values()) if kind == "id"]
        damaged = {
            "one field more": delimiter.join([*cells, "9"]),
            "half a row": delimiter.join(cells[: len(cells) // 2]),
            "one field": "x",
        }
        if ids:
            same = list(cells)
            same[ids[0]] = rows[0].split(delimiter)[ids[0]]
            damaged["id used twice"] = delimiter.join(same)
        for fault, row in damaged.items():
            yield Case(
                f"{format}, row: {fault}",
                command(format),
                (f"t.{format}:{line}:",),
                files(format, text(format, rows=[rows[0], row, rows[2]])),
            )


def whole_files(good):
    """Contents of a file that is no trace, by fault."""
    packed = gzip.compress(good.encode(), mtime=0)
    return {
        "empty": b"",
        "blanks": b" \n \r\n",
        "byte-order mark alone": b"\xef\xbb\xbf",
        "UTF-16": good.encode("utf-16"),
        "UTF-32": good.encode("utf-32"),
        "Latin-1 byte": good.encode() + b"\xe9",
        "overlong UTF-8": good.encode() + b"\xc0\xaf",
        "surrogate in UTF-8": good.encode() + b"\xed\xa0\x80",
        "NUL byte": good.encode() + b"\0",
        "truncated gzip": packed[:-12],
        "gzip with a wrong checksum": packed[:-8] + b"\0" * 8,
        "gzip of nothing": gzip.compress(b"", mtime=0),
        "gzip inside gzip": gzip.compress(packed, mtime=0),
        "zip": b"PK\x03\x04" + b"\0" * 40,
        "pickle": pickle.dumps({"job_id": [1]}),
        "PNG": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
        "HTML page": b"<!DOCTYPE html><html>404</html>",
        "Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 1\n",
        "a million columns": ("x," * 10**6).encode(),
        "a field of 5 MB": ("x" * (5 << 20)).encode(),
        "deeply nested JSON": b"[" * 10**5,
        "terminal escapes": f"{ANSI},{ANSI}\n1,2\n".encode(),
        "one word": b"hello\n",
        "Python": b"import os\nos.remove('x')\n",
    }


def file_cases():
    for format in FORMATS:
        if format not in TABLES and format not in JSON:
            continue
        good = json.dumps(JSON[format]) if format in JSON else text(format)
        for fault, content in whole_files(good).items():
            yield Case(
                f"{format}, file: {fault}",
                command(format),
                (f"t.{format}",),
                files(format, content),
            )
        for fault, content in NO_FILES.items():
            yield Case(
                f"{format}, file: {fault}",
                command(format),
                (f"t.{format}",),
                files(format, content),
            )


JSON = {
    "batsim": {
        "nb_res": 8,
        "jobs": [
            {"id": "a", "subtime": 0, "res": 1, "profile": "long", "walltime": 100},
            {"id": "b", "subtime": 5, "res": 2, "profile": "long", "walltime": 100},
        ],
        "profiles": {"long": {"type": "delay", "delay": 60}},
    },
    "philly-json": [
        {
            "jobid": name,
            "vc": "v",
            "user": "u",
            "submitted_time": "2017-10-09 07:00:00",
            "attempts": [
                {
                    "start_time": "2017-10-09 07:01:00",
                    "end_time": "2017-10-09 08:00:00",
                    "detail": [{"ip": "m1", "gpus": ["gpu0"]}],
                }
            ],
        }
        for name in ("a", "b")
    ],
}
#: JSON values of another type than a key has.
WRONG = {
    "null": None,
    "true": True,
    "negative": -2,
    "huge": 1e300,
    "text": "two",
    "terminal escape": ANSI,
    "list": [],
    "object": {"a": 1},
    "nested list": [[[[1]]]],
    "NaN": float("nan"),
    "infinite": float("inf"),
    "number of 400 digits": 10**400,
}
#: (format, keys to the value, faults that are read as a missing or accepted value)
PLACES = [
    ("batsim", ("jobs",), set()),
    ("batsim", ("profiles",), set()),
    ("batsim", ("jobs", 1), set()),
    ("batsim", ("jobs", 1, "id"), {"negative", "text"}),
    ("batsim", ("jobs", 1, "subtime"), set()),
    ("batsim", ("jobs", 1, "res"), set()),
    ("batsim", ("jobs", 1, "profile"), set()),
    ("batsim", ("jobs", 1, "walltime"), {"null"}),
    ("batsim", ("profiles", "long"), set()),
    ("batsim", ("profiles", "long", "delay"), {"huge"}),
    ("philly-json", (1,), set()),
    ("philly-json", (1, "jobid"), {"text", "negative"}),
    ("philly-json", (1, "submitted_time"), {"null"}),
    ("philly-json", (1, "attempts"), {"list"}),
    ("philly-json", (1, "attempts", 0), {"object"}),
    ("philly-json", (1, "attempts", 0, "start_time"), {"null"}),
    ("philly-json", (1, "attempts", 0, "end_time"), {"null"}),
    ("philly-json", (1, "attempts", 0, "detail"), {"list", "null"}),
    ("philly-json", (1, "attempts", 0, "detail", 0), set()),
    ("philly-json", (1, "attempts", 0, "detail", 0, "gpus"), {"list"}),
    ("philly-json", (1, "vc"), {"text", "null"}),
    ("philly-json", (1, "user"), {"text", "null"}),
]


def changed(document, keys, value):
    """Copy of a document with another value below ``keys``."""
    document = json.loads(json.dumps(document))
    inner = document
    for key in keys[:-1]:
        inner = inner[key]
    inner[keys[-1]] = value
    return document


def json_text(value):
    """JSON with the constants of Python, in which a number may have 400 digits."""
    digits = str(10**400) if value is not None else ""
    return json.dumps(value).replace('"DIGITS"', digits)


def json_cases():
    for format, keys, accepted in PLACES:
        for fault, value in WRONG.items():
            if fault in accepted:
                continue
            mark = "DIGITS" if fault == "number of 400 digits" else value
            yield Case(
                f"{format}, {'.'.join(map(str, keys))}: {fault}",
                command(format),
                (f"t.{format}:",),
                files(format, json_text(changed(JSON[format], keys, mark))),
            )
    for format, document in JSON.items():
        good = json.dumps(document)
        first = next(iter(document if isinstance(document, dict) else document[0]))
        broken = {
            "cut short": good[: len(good) // 2],
            "two documents": good + good,
            "trailing comma": good[:-1] + "," + good[-1],
            "single quotes": good.replace('"', "'"),
            "comment": "// jobs\n" + good,
            "key twice": good.replace(f'"{first}"', f'"{first}": 1, "{first}"', 1),
            "JSON lines": '{"a": 1}\n{"a": 2}\n',
            "a number": "1",
            "a text": '"jobs"',
            "null": "null",
            "empty object": "{}",
            "empty list": "[]",
            "nested 100,000 deep": good[:-1] + "," + "[" * 10**5,
            "control character in a text": good.replace('"a"', '"a\x01"'),
            "lone surrogate": good.replace('"a"', '"\\ud800"'),
        }
        for fault, content in broken.items():
            yield Case(
                f"{format}, JSON: {fault}",
                command(format),
                (f"t.{format}:",),
                files(format, content),
            )


def accepted_cases():
    """Files that only look strange: read as the plain file."""
    for format in [*TABLES, *JSON]:
        good = text(format) if format in TABLES else json.dumps(JSON[format], indent=1)
        strange = {
            "plain": good.encode(),
            "byte-order mark": b"\xef\xbb\xbf" + good.encode(),
            "line ends of Windows": good.replace("\n", "\r\n").encode(),
            "no last line end": good.rstrip("\n").encode(),
            "blank lines below": good.encode() + b"\n\n",
            "gzip": gzip.compress(good.encode(), mtime=0),
        }
        jobs = "2" if format in JSON else "3"
        for name, content in strange.items():
            yield Case(
                f"{format}, accepted: {name}",
                (*command(format), "--json"),
                (f'"jobs": {jobs}',),
                files(format, content),
                code=0,
            )


CASES = [
    *cell_cases(),
    *header_cases(),
    *row_cases(),
    *file_cases(),
    *json_cases(),
    *accepted_cases(),
]


@pytest.mark.parametrize("case", parameters(CASES))
def test_a_hostile_trace(case, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check(case, tmp_path)


def test_every_format_has_cases():
    assert sorted([*TABLES, *JSON]) == sorted(FORMATS)
