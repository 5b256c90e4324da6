"""Reading throughput tables: JSON, CSV, frames, public names; what is refused and how."""

from __future__ import annotations

import copy
import json
import os
import warnings

import pandas as pd
import pytest

from repro.base.errors import StandInWarning, TraceError
from repro.files import public
from repro.perf import ThroughputTable
from repro.perf.throughput_files import is_stand_in, load_throughputs, provenance, throughputs_of
from repro.trace.load import load

A = "('A3C', 1)"
B = "('LM (batch size 5)', 1)"
GOOD = {
    "k80": {A: {"null": 2.0, A: [1.0, 1.0], B: [0, 0]}, B: {"null": 25, A: [0, 0], B: [12, 12]}},
    "v100": {
        A: {"null": 8.0, A: [4.0, 4.0], B: [6.0, 50.0]},
        B: {"null": 100.0, A: [50.0, 6.0], B: [60.0, 60.0]},
    },
    "v100_unconsolidated": {A: {"null": 8.0}},
}
ROWS = """\
job_type,batch_size,scale_factor,gpu_type,steps_per_second,job_type_b,steps_per_second_b
A3C,,1,v100,8,,
LM (batch size 5),5,1,v100,100,,
A3C,,1,v100,4,A3C,4
LM (batch size 5),5,1,v100,50,A3C,6
LM (batch size 5),5,1,v100,60,LM (batch size 5),60
"""


@pytest.fixture
def read(tmp_path):
    def read(content, reference="v100"):
        text = content if isinstance(content, str) else json.dumps(content)
        path = tmp_path / ("speeds.csv" if isinstance(content, str) else "speeds.json")
        path.write_text(text)
        return load_throughputs(path, reference)

    return read


def test_json(read):
    table = read(GOOD)
    assert table.gpu_types == ("k80", "v100")
    assert table.rows["A3C", 1] == {"k80": 2.0, "v100": 8.0, "v100_unconsolidated": 8.0}
    lm = "LM (batch size 5)"
    assert table.pair_speeds(lm, 1, "A3C", 1, ("k80", "v100")).tolist() == [[0, 50], [0, 6]]


def test_csv_and_json_of_the_same_speeds_are_the_same_table(read):
    as_csv = read(ROWS)
    assert as_csv == read({"v100": GOOD["v100"]})
    assert as_csv == load_throughputs(pd.read_csv(pd.io.common.StringIO(ROWS)))


def test_a_csv_without_pairs(read):
    table = read(
        "job_type,scale_factor,gpu_type,steps_per_second\nA3C,1,k80,2\nA3C,2,k80,4\n", "k80"
    )
    assert (table.pairs, table.steps_per_s("A3C", 2, "k80")) == ({}, 4.0)


def test_a_file_is_read_once_until_it_changes(read):
    table = read(GOOD)
    assert read(GOOD) != read(ROWS)
    changed = copy.deepcopy(GOOD)
    changed["v100"][A]["null"] = 8.25
    assert read(changed).steps_per_s("A3C", 1, "v100") == 8.25
    assert load_throughputs(table) is table


def put(*path_and_value):
    *path, last, value = path_and_value
    content = copy.deepcopy(GOOD)
    inner = content
    for name in path:
        inner = inner[name]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return content


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (put("v100", A, "null", -1.0), r"speeds.json: v100: .*A3C.*\"null\": negative \(-1.0\)"),
        (put("v100", A, "null", "fast"), r"A3C.*\"null\": not a number \('fast'\)"),
        (put("v100", A, "null", float("inf")), r"A3C.*\"null\": not a number \(inf\)"),
        (put("v100", A, B, [True, 1]), r"v100: \('A3C', 1\): .*LM.*: not a number \(True\)"),
        (put("v100", B, B, [1, -2]), r"LM.*: negative \(-2\); .* 0 or more"),
        (put("v100", A, "null", None), r"A3C.*\"null\": missing entry: the throughput alone"),
        (put("v100", B, B, None), r"v100: .*LM.*: .*LM.*: missing entry: this pair"),
        (put("v100", B, None), r"missing entry: the throughput of LM .* on 1 GPUs alone"),
        (
            put("v100", B, A, [50.0, 7.0]),
            r"A3C paired with LM .* on v100 is given twice, as 6 and 50",
        ),
        (put("v100", A, [1]), "not a Gavel throughput table"),
        (put("v100", A, B, 3.0), "LM.*not a pair of speeds"),
        (put("v100", "A3C", {"null": 1.0}), "A3C: not a job type with its speeds"),
        ({"v100": 3}, "v100: no job types"),
        ([], "no GPU types"),
    ],
)
def test_json_that_is_refused(read, content, words):
    with pytest.raises(TraceError, match=words) as caught:
        read(content)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("A3C,,1,v100,8,,", "A3C,,1,v100,-8,,", r"speeds.csv:2:steps_per_second: negative \(-8\)"),
        ("A3C,,1,v100,8,,", "A3C,,1,v100,fast,,", r"csv:2:steps_per_second: .*\(fast\)"),
        ("A3C,,1,v100,8,,", "A3C,,1.5,v100,8,,", r"csv:2:scale_factor: not whole"),
        ("A3C,,1,v100,8,,", "A3C,,0,v100,8,,", r"csv:2:scale_factor: too small \(0\)"),
        ("A3C,,1,v100,8,,", ",,1,v100,8,,", r"csv:2:job_type: missing value"),
        ("A3C,,1,v100,8,,", "A3C,,1,v100,8,,\nA3C,,1,v100,9,,", "csv:3:steps_per_second: a second"),
        ("A3C,,1,v100,8,,", "A3C,,1,v100,8,,\nA3C,,1,k80,9,,", r"k80: .*LM.*missing entry"),
        ("50,A3C,6", "50,A3C,", r"csv:5:steps_per_second_b: missing value"),
        ("50,A3C,6", "50,A3C,-6", r"csv:5:steps_per_second_b: negative"),
        ("50,A3C,6", "50,GPT,6", r"missing entry"),
        ("LM (batch size 5),5,1,v100,100,,\n", "", "the throughput alone of LM"),
        ("50,A3C,6", "50,,6", r"csv:5:steps_per_second_b: no job_type_b in this row \(6\); a pair"),
        ("job_type_b", "other", r"csv:4:steps_per_second_b: no job_type_b in this row \(4\)"),
        ("steps_per_second_b", "other", "steps_per_second_b: missing column"),
        ("gpu_type", "gpu", "gpu_type: missing column"),
    ],
)
def test_csv_that_is_refused(read, old, new, words):
    with pytest.raises(TraceError, match=words):
        read(ROWS.replace(old, new, 1))


def test_unknown_names_references_and_kinds(read):
    with pytest.raises(TraceError, match=r"no throughputs for GPU type 't4'; .*k80, v100"):
        read(GOOD, "t4")
    with pytest.raises(TraceError, match="did you mean 'gavel-throughputs'"):
        load_throughputs("gavel-throughput")
    with pytest.raises(TraceError, match="format philly, not a throughput table"):
        load_throughputs("philly")


def test_a_job_type_without_throughput_is_named(tmp_path):
    (tmp_path / "speeds.csv").write_text(ROWS)
    path = tmp_path / "jobs.trace"
    path.write_text("GPT\tmain.py\trl\t--n\t0\t480\t1\t1\t-1.000000\t30\n")
    with pytest.raises(TraceError, match=r"jobs.trace:1:job_type: no throughput on v100 .*GPT"):
        load(path, "gavel", throughputs=tmp_path / "speeds.csv")


def test_a_trace_names_its_table(tmp_path):
    speeds = tmp_path / "speeds.json"
    speeds.write_text(json.dumps(GOOD))
    path = tmp_path / "jobs.trace"
    path.write_text("A3C\tmain.py\trl\t--n\t0\t480.5\t1\t1\t-1.000000\t30\n")
    frame = load(path, "gavel", throughputs=speeds, reference_gpu="k80")
    assert frame["iterations"].tolist() == [480.5]
    assert frame["duration"].tolist() == [240.25]
    assert frame.attrs["throughputs"] == str(speeds)
    assert throughputs_of(frame) == ThroughputTable(
        load_throughputs(speeds).rows, "k80", load_throughputs(speeds).pairs
    )
    assert throughputs_of(pd.DataFrame({"job_id": [1]})) is None
    assert provenance("gavel-throughputs", "v100")["throughputs"] == "gavel-throughputs"


def test_a_file_named_as_a_public_table_hides_it_only_under_its_path(mirror, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gavel-throughputs").write_text(json.dumps(GOOD))
    assert len(load_throughputs("gavel-throughputs").rows) > len(GOOD)
    assert provenance("gavel-throughputs", "v100")["throughputs"] == "gavel-throughputs"
    own = load_throughputs("./gavel-throughputs", "k80")
    assert own.rows == load_throughputs(tmp_path / "gavel-throughputs", "k80").rows
    path = str(tmp_path / "gavel-throughputs")
    assert provenance("./gavel-throughputs", "k80")["throughputs"] == path


def test_what_cannot_be_had_is_replaced_and_said(tmp_path, monkeypatch):
    monkeypatch.delenv("REPRO_TRACE_MIRROR", raising=False)
    monkeypatch.setenv("REPRO_CACHE_DIR", str(tmp_path / "cache"))
    tried = []

    def refuse(url, path):
        tried.append(url)
        raise OSError("no network in tests")

    monkeypatch.setattr(public, "_retrieve", refuse)
    for _ in range(2):
        with pytest.warns(StandInWarning, match=r"gavel-throughputs: .*; a synthetic stand-in"):
            table = load_throughputs("gavel-throughputs")
    assert len(tried) == 1
    assert is_stand_in("gavel-throughputs")
    assert table is load_throughputs("gavel-like-throughputs")


@pytest.mark.parametrize(
    ("name", "pairs"), [("gavel-throughputs", 921), ("gavel-throughputs-physical", 921)]
)
def test_public_tables(mirror, monkeypatch, name, pairs):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    table = load_throughputs(name)
    assert (len(table.rows), len(table.pairs)) == (83, pairs)
    assert not is_stand_in(name)
    assert table.steps_per_s("ResNet-50 (batch size 128)", 2, "k80") == 0
    alone = [table.steps_per_s(a, g, "v100") for a, _, g in table.pairs]
    shared = [row["v100"][0] for row in table.pairs.values()]
    assert all(pair <= single + 1e-9 for pair, single in zip(shared, alone, strict=True))


def test_public_csv_has_the_speeds_of_the_public_json(mirror, monkeypatch):
    monkeypatch.setenv("REPRO_TRACE_MIRROR", str(mirror))
    path = mirror.parent / "gavel_isolated_throughputs.csv"
    if not path.is_file():
        pytest.skip("no gavel_isolated_throughputs.csv beside the public traces")
    assert load_throughputs(path).rows == load_throughputs("gavel-throughputs").rows


def refused(read, content):
    """Return the one line that a table is refused with; a warning beside it is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        with pytest.raises(TraceError) as caught:
            read(content)
    message = str(caught.value)
    assert message.isprintable()
    assert len(message) < 500
    return message


LIMITS = "a throughput is steps per second, 0 or more: 0, or 1e-09 to 1e+09"


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (1e308, "too large (1e+308)"),
        (1e-308, "too small (1e-308)"),
        (5e-324, "too small (5e-324)"),
        (10**20, "too large (100000000000000000000)"),
        (10**4000, "not a number (inf)"),
        (float("nan"), "not a number (nan)"),
    ],
)
def test_speeds_of_no_machine(read, value, rule):
    message = refused(read, put("v100", A, "null", value))
    assert f'"null": {rule}; {LIMITS}' in message
    if rule.startswith("too"):
        row = f"A3C,,1,v100,{value!r},,"
        message = refused(read, ROWS.replace("A3C,,1,v100,8,,", row, 1))
        assert f"speeds.csv:2:steps_per_second: {rule[:9]}" in message
        assert message.endswith(LIMITS)


TABLE = '{"v100": {"(\'A3C\', 1)": {"null": 4.0}}}'


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("('A3C', True)", "not a job type with its speeds"),
        ("('A3C', 10000000)", "not a job type with its speeds"),
        ("(" * 5000 + ")" * 5000, "not a job type with its speeds"),
        ("('A3C', " + "9" * 5000 + ")", "not a job type with its speeds"),
        ("-" * 900 + "1", "not a job type with its speeds"),
        ("('A3C',\\n 1)", "not a job type with its speeds"),
        ("('\\u001b[2J', 1)", r"('\x1b[2J', 1): not a job type with its speeds"),
    ],
)
def test_keys_that_are_no_job_type(read, key, words):
    text = TABLE.replace("('A3C', 1)", key)
    json.loads(text)
    assert words in refused(read, text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (TABLE[:-1] + "," + TABLE[1:], "speeds.csv:1:1: the key v100 is twice"),
        (
            TABLE.replace("}}}", '}, "(\\"A3C\\",1)": {"null": 5.0}}}'),
            "a job type given twice",
        ),
        ('{"a":' * 20_000, "speeds.csv:1:1: JSON nested too deeply"),
        ("[" * 100_000, "speeds.csv:1:1: JSON nested too deeply"),
        (TABLE.replace("4.0", "9" * 5000), "not a number (inf)"),
        (TABLE.replace("4.0", "1e400"), "not a number (inf)"),
        (TABLE + "\n}", "speeds.csv:2:1: more text after the JSON"),
        (TABLE.replace("v100", "v\\u0007"), r"v\x07: control characters in a GPU type"),
        ("{", "speeds.csv:1:2: broken JSON"),
    ],
)
def test_json_text_that_is_refused(read, content, words):
    assert words in refused(read, content)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("A3C,,1,v100", "A3C,,1e300,v100", "csv:2:scale_factor: too large (1e300); a gang has 1"),
        ("A3C,,1,v100", "A\x1b[2J,,1,v100", r"csv:2:job_type: control characters (A\x1b[2J)"),
        (
            "4,A3C,4",
            "4,A3C,5",
            "csv:4:job_type_b: A3C paired with itself on v100 has two speeds, 4 and",
        ),
        ("60,LM (batch size 5),60", "60", "csv:6: 5 fields where 7 are expected"),
    ],
)
def test_csv_text_that_is_refused(read, old, new, words):
    assert words in refused(read, ROWS.replace(old, new, 1))


def test_a_pair_of_one_type_has_one_speed(read):
    message = refused(read, put("v100", A, A, [4.0, 5.0]))
    assert "A3C paired with itself on v100 has two speeds, 4 and 5 steps/s" in message


def test_only_regular_files_are_read(tmp_path):
    pipe = tmp_path / "speeds.json"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        with pytest.raises(TraceError, match=f"^{path}: a pipe or device; write its content"):
            load_throughputs(path)
    with pytest.raises(TraceError, match=f"^{tmp_path}: is a folder"):
        load_throughputs(tmp_path)
    with pytest.raises(TraceError, match="no such file, nor a public trace"):
        load_throughputs("a" * 5000)
