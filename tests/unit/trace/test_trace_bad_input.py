from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.errors import TraceError
from repro.trace.load import load

HEAD = "job_id,num_gpu,submit_time,iterations,model_name,duration,interval"
ROWS = ["0,1,0,606,vgg19,164,30", "1,8,30,133,vgg11,147,23", "2,2,53,157,inception4,127,26"]


def text(*rows: str, head: str = HEAD) -> str:
    return "\n".join([head, *rows]) + "\n"


@pytest.fixture
def fails(tmp_path):
    def _fails(content: str | bytes, format: str = "tiresias", cluster_gpus: int | None = None):
        path = tmp_path / "bad.csv"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(TraceError) as caught:
            load(path, format, cluster_gpus=cluster_gpus)
        message = str(caught.value)
        assert "\n" not in message
        assert message.startswith(f"{path}:"), message
        return message.removeprefix(f"{path}:")

    return _fails


@pytest.mark.parametrize(
    ("row", "start"),
    [
        ("2,2,53,157,x,-127,26", "4:duration: not positive (-127); a duration is seconds above 0"),
        ("2,2,53,157,x,0,26", "4:duration: not positive (0); "),
        ("2,0,53,157,x,127,26", "4:num_gpu: too small (0); a job holds 1 to 1,000,000 whole GPUs"),
        ("2,2.5,53,157,x,127,26", "4:num_gpu: not a whole number (2.5); "),
        ("2,10000000,53,157,x,127,26", "4:num_gpu: too large (10000000); "),
        ("1,2,53,157,x,127,26", "4:job_id: duplicate id (1); "),
        ("2,2,53,157,x,,26", "4:duration: missing value (empty); "),
        ("2,2,53,157,x,NaN,26", "4:duration: missing value (NaN); "),
        ("2,2,53,157,x,,", "4:duration: missing value (empty); "),
        ("2,2,53", "4: 3 fields where 7 are expected; "),
        (",2,53,157,x,127,26", "4:job_id: missing value (empty); "),
        ("2,2,-53,157,x,127,26", "4:submit_time: negative (-53); "),
        ("2,2,inf,157,x,127,26", "4:submit_time: not finite (inf); "),
        ("2,two,53,157,x,127,26", "4:num_gpu: not a number (two); "),
        ("2,2,53,many,x,127,26", "4:iterations: not a number (many); "),
        ("2,2,53,157,x,127,26,9", "4: 8 fields where 7 are expected; "),
    ],
)
def test_bad_row(fails, row, start):
    assert fails(text(*ROWS[:2], row)).startswith(start)


def test_first_row_too_long(fails):
    assert fails(text(ROWS[0] + ",9", ROWS[1])).startswith("2: 8 fields where 7 are expected")


def test_more_gpus_than_the_cluster(fails):
    message = fails(text(*ROWS), cluster_gpus=4)
    assert message.startswith("3:num_gpu: more GPUs than the cluster has (8); job 1 can never")


def test_lines_are_physical_despite_blanks_quotes_and_crlf(fails):
    rows = [ROWS[0], "", '1,8,30,133,"vgg\n11",147,23', "   ", "2,2,53,157,x,-1,26"]
    assert fails(text(*rows)).startswith("7:duration: not positive (-1)")
    assert fails(text(*rows).replace("\n", "\r\n")).startswith("7:duration: not positive (-1)")


def test_lines_are_of_the_file_not_of_the_sorted_trace(fails):
    rows = ["0,1,100,6,x,164,30", "1,8,50,6,x,-5,23", "2,2,0,6,x,127,26"]
    assert fails(text(*rows)).startswith("3:duration")


def test_missing_column(fails):
    message = fails(text("0,1,0,606,vgg19,30", head=HEAD.replace("duration,", "")))
    assert message.startswith("1:duration: missing column (found job_id, num_gpu, submit_time")


def test_long_and_broken_headers_stay_one_short_line(fails):
    assert len(fails(text("0,1", head="x" * 5000))) < 400
    assert "found job id, num_gpu)" in fails(text("0,1", head='"job\nid",num_gpu'))


def test_column_twice(fails):
    message = fails(text("0,1,0,6,x,1,2,3", head=HEAD + ",duration"))
    assert message.startswith("1:duration: column appears twice")


@pytest.mark.parametrize(
    ("delimiter", "name"), [(";", "semicolon"), ("\t", "tab"), ("|", "pipe"), (" ", "space")]
)
def test_wrong_delimiter(fails, delimiter, name):
    message = fails(text(*ROWS).replace(",", delimiter))
    assert message.startswith(f"1: wrong delimiter: found {name} ({delimiter!r})")
    assert "comma (',')" in message


def test_wrong_delimiter_gavel(fails):
    message = fails("A3C,python3 main.py,rl,--max-steps,0,480,1,1,-1,30\n", "gavel")
    assert message.startswith("1: wrong delimiter: found comma (','), this format uses tab")
    assert fails("A3C\tmain.py\trl\n", "gavel").startswith("1: 3 fields where 7 are expected")


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"", " empty file"),
        (b"\n \r\n", " empty file"),
        (b"\xef\xbb\xbf", " empty file"),
        (HEAD.encode() + b"\r\n", " header only, no jobs"),
        (b"\x1f\x8b\x08\x00junk\xff\xfe", " binary data (byte 0x8b at offset 1)"),
        (HEAD.encode() + b"\n0,1,\x00,", " binary data (byte 0x00 at offset 71)"),
        ((HEAD + "\n0,1,0,6,é,164,30\n").encode("latin-1"), " binary data (byte 0xe9"),
        (HEAD.encode("utf-16"), " UTF-16 text; save it as UTF-8"),
        (b"<!DOCTYPE html>\n<html><body>404</body></html>", " an HTML or XML page"),
        (b"\xef\xbb\xbf\n<html>", " an HTML or XML page"),
        (HEAD.encode() + b'\n0,1,0,6,"vgg,164,30\n', " not a readable table"),
        (HEAD.encode() + b'\n0,1,0,6,"vgg,164,30\n' + b"x" * 200_000, "2: not a readable row"),
        (b'""\n', "1:job_id,num_gpu,submit_time,duration: missing column"),
    ],
)
def test_not_a_table(fails, content, what):
    assert fails(content).startswith(what)


@settings(max_examples=150, deadline=None)
@given(
    start=st.integers(0, 150),
    cut=st.integers(0, 20),
    put=st.sampled_from([*',";\t\n\r-x', "1e999", "9" * 25, "nan", "", "é", "None"]),
)
def test_damage_is_harmless_or_one_line(tmp_path_factory, start, cut, put):
    content = text(*ROWS)
    path = tmp_path_factory.mktemp("damaged") / "jobs.csv"
    path.write_text(content[:start] + put + content[start + cut :])
    try:
        load(path, "tiresias")
    except TraceError as error:
        assert str(error).startswith(f"{path}:")
        assert "\n" not in str(error)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(TraceError, match="no such file"):
        load(tmp_path / "none.csv", "tiresias")
    with pytest.raises(TraceError, match="is a folder; give the trace file inside it"):
        load(tmp_path, "tiresias")


@pytest.mark.parametrize(
    "content",
    [
        "﻿" + text(*ROWS),
        text(*ROWS).replace("\n", "\r\n"),
        "﻿" + text(*ROWS).replace("\n", "\r\n"),
        text(*ROWS).replace("\n", "\r"),
        text(*ROWS).rstrip("\n"),
        "\n\n" + text(*ROWS),
        text(*ROWS).replace(",", " , "),
        text(*ROWS).replace(",", ", ", 3),
    ],
    ids=["bom", "crlf", "bom+crlf", "cr", "no end of line", "blank first", "spaces", "header"],
)
def test_harmless_variants(tmp_path, content):
    path = tmp_path / "jobs.csv"
    path.write_bytes(content.encode())
    frame = load(path, "tiresias")
    assert frame["job_id"].tolist() == [0, 1, 2]
    assert frame["duration"].tolist() == [164.0, 147.0, 127.0]


@pytest.mark.parametrize(
    ("format", "content", "start"),
    [
        (
            "pcs",
            "app_id,submit_time,service,num_jobs,sleep_time\n0,0,9,1,0\n1,0,9,1,-4\n",
            "3:sleep_time: negative (-4); ",
        ),
        (
            "pcs",
            "app_id,submit_time,service,num_jobs,sleep_time\n0,0,9,1,0\n1,0,-9,1,4\n",
            "3:service: not positive (-9); ",
        ),
        (
            "pcs",
            "app_id,submit_time,service,num_jobs,sleep_time\n0,0,9,0,0\n",
            "2:num_jobs: too small (0); ",
        ),
        (
            "philly",
            "timestamp,duration,num_gpus\n2017-10-09 07:01:55,6,1\n2017-13-09 07:01:55,6,1\n",
            "3:timestamp: not a date (2017-13-09 07:01:55); a date looks like",
        ),
        (
            "philly",
            "timestamp,duration,num_gpus\n2017-10-09 07:01:55,6,1\n,6,1\n",
            "3:timestamp: missing value (empty); ",
        ),
        (
            "helios",
            "job_id,gpu_num,submit_time,start_time,end_time,duration\n"
            "1,0,2020-06-09,2020-06-09,2020-06-09,5\n"
            "2,1,2020-06-09,2020-06-09,2020-06-09,-5\n",
            "3:duration: negative (-5); ",
        ),
        (
            "alibaba-openb",
            "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
            "p0,0,0,1,5,2\np1,1,1000,1,5,7\n",
            "3:deletion_time: not positive (5); ",
        ),
        (
            "gavel",
            "A3C\tmain.py\trl\t--n\t0\t480\t1\t1\t-1\t0\nA3C\tmain.py\trl\t--n\t0\t-4\t1\t1\t-1\t0\n",
            "2:steps: too small (-4); ",
        ),
    ],
)
def test_bad_rows_of_other_formats(fails, format, content, start):
    assert fails(content, format).startswith(start)
