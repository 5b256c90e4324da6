from __future__ import annotations

import os
import time
import warnings
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from repro.base.errors import TraceError
from repro.trace.load import DROP_HINT, load

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
        return message.removeprefix(f"{path}:").removesuffix(f"; {DROP_HINT}")

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
        (HEAD.encode() + b"\r\n", " header only, no rows"),
        (b"\x1f\x8b\x08\x00junk\xff\xfe", " a broken gzip file (Compressed file ended"),
        (b"PK\x03\x04junk", " a zip archive or an Excel workbook; unpack it, or save it as CSV"),
        (b"\x01\x02\xff\xfe", " binary data (byte 0xff at offset 2)"),
        (HEAD.encode() + b"\n0,1,\x00,", " binary data (byte 0x00 at offset 71)"),
        ((HEAD + "\n0,1,0,6,é,164,30\n").encode("latin-1"), "2: not UTF-8 (looks like Latin-1)"),
        ((HEAD + "\n0,1,0,6,张三,164,30\n").encode("gbk"), "2: not UTF-8 (looks like GBK)"),
        (HEAD.encode("utf-16"), " UTF-16 text; save it as UTF-8"),
        (HEAD.encode("utf-16-le"), "1: not UTF-8 (looks like UTF-16): save it as UTF-8"),
        (b"<!DOCTYPE html>\n<html><body>404</body></html>", " an HTML or XML page"),
        (b"\xef\xbb\xbf\n<html>", " an HTML or XML page"),
        (HEAD.encode() + b'\n0,1,0,6,"vgg,164,30\n', "2: not a readable row (a quote that"),
        (HEAD.encode() + b'\n0,1,0,6,"vgg,164,30\n' + b"x" * 200_000, "2: not a readable row"),
        (b'""\n', "1:job_id,num_gpu,submit_time,duration: missing column"),
    ],
)
def test_not_a_table(fails, content, what):
    assert fails(content).startswith(what)


@settings(max_examples=150)
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
            "pcs",
            "app_id,service,num_jobs,sleep_time,model_name\n0,9,1,0,\n1,9,1,4,Vgg\n",
            "3:model_name: no speed-up curve (Vgg); there are curves of VggnetModel256 to 8, ",
        ),
        (
            "pcs",
            "app_id,service,num_jobs,sleep_time,model_name\n0,9,5,0,ChatbotModel256\n",
            "2:num_jobs: beyond its curve (5); each curve ends at a number of GPUs: ",
        ),
        (
            "pcs",
            "app_id,service,num_jobs,sleep_time,model_name\n0,9,1.5,0,ChatbotModel256\n",
            "2:num_jobs: not a whole number (1.5); ",
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
            "job_id,gpu_num,submit_time,start_time,end_time\n"
            "1,0,2020-06-09,2020-06-09,2020-06-09\n"
            "2,1.5,2020-06-09,2020-06-09,2020-06-10\n",
            "3:gpu_num: not a whole number (1.5); ",
        ),
        (
            "alibaba-openb",
            "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
            "p0,0,0,1,5,2\np1,1,1000,-1,5,2\n",
            "3:creation_time: negative (-1); ",
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


HELIOS = "job_id,gpu_num,submit_time,start_time,end_time,duration\n"
LATE = "8,1,2020-06-09 18:41:01,2020-06-09 18:41:01,2020-06-09 18:42:01,60\n"


@pytest.mark.parametrize(
    ("date", "rule"),
    [
        ("-1", "not a date"),
        ("1", "not a date"),
        ("2017", "not a date"),
        ("2017-10", "not a date"),
        ("2017-10-09 07:01:55+8", "not a date"),
        ("２０１７-10-09 07:01:55", "not a date"),
        ("2017-02-30 07:01:55", "not a date"),
        ("0001-10-09 07:01:55", "year before 1970 or after 2100"),
        ("1969-12-31", "year before 1970 or after 2100"),
        ("2101-01-01 00:00", "year before 1970 or after 2100"),
    ],
)
def test_dates(fails, date, rule):
    philly = f"timestamp,duration,num_gpus\n2017-10-09 07:01:55,6,1\n{date},6,1\n"
    message = f"{rule} ({date}); a date looks like 2017-10-09 07:01:55, of 1970 to 2100"
    assert fails(philly, "philly") == f"3:timestamp: {message}"
    for place in range(3):
        dates = [date if n == place else "2020-06-09 18:41:01" for n in range(3)]
        column = ("submit_time", "start_time", "end_time")[place]
        text = f"{HELIOS}{LATE}7,1,{','.join(dates)},60\n"
        assert fails(text, "helios") == f"3:{column}: {message}"


@pytest.mark.parametrize(
    ("date", "hint"),
    [
        ("20171009", "write dates as 2020-06-09 18:00:00"),
        ("2020/06/09 18:00", "write dates as 2020-06-09 18:00:00"),
        ("6/9/2020 18:00", "write dates as 2020-06-09 18:00:00"),
        ("09.06.2020", "write dates as 2020-06-09 18:00:00"),
        ("1507532400", "looks like seconds since 1970: write dates as 2020-06-09 18:00:00"),
        ("1591725600000", "looks like milliseconds since 1970: write dates as 2020-06-09 18:00:00"),
    ],
)
def test_dates_of_another_shape_come_with_advice(fails, date, hint):
    philly = f"timestamp,duration,num_gpus\n2017-10-09 07:01:55,6,1\n{date},6,1\n"
    assert fails(philly, "philly") == f"3:timestamp: not a date ({date}); {hint}"
    text = f"{HELIOS}{LATE}7,1,{date},2020-06-09,2020-06-10,60\n"
    assert fails(text, "helios") == f"3:submit_time: not a date ({date}); {hint}"


@pytest.mark.parametrize(
    ("time", "hint"),
    [
        ("1600000000000", "looks like milliseconds since 1970: divide by 1000"),
        ("1600000000000000", "looks like microseconds since 1970: divide by 1e6"),
        ("1.6e18", "looks like nanoseconds since 1970: divide by 1e9"),
    ],
)
def test_times_in_other_units_since_1970_come_with_advice(fails, time, hint):
    message = fails(text(ROWS[0], f"1,8,{time},133,vgg11,147,23"))
    assert message.startswith(f"3:submit_time: too large ({time})") and message.endswith(hint)


def test_blanks_beside_dates_are_no_part_of_them(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text((HELIOS + LATE).replace(",", ", "))
    frame = load(path, "helios")
    assert frame["duration"].tolist() == [60.0]


def test_dates_with_and_without_an_offset_in_one_file(fails):
    plain = "2020-06-09 18:41:01"
    zoned = "2020-06-09 18:41:01+08:00"
    rule = f"an offset from UTC ({zoned}); the dates of a file all have an offset from UTC"
    text = f"timestamp,duration,num_gpus\n{plain},6,1\n{zoned},6,1\n"
    assert fails(text, "philly").startswith(f"3:timestamp: {rule}")
    text = f"{HELIOS}{LATE}7,1,{plain},{zoned},{plain},60\n"
    assert fails(text, "helios").startswith(f"3:start_time: {rule}")


@pytest.mark.parametrize(
    "date",
    [
        "2017-10-09",
        "2017-10-09T07:01",
        "1970-01-01 00:00:00.250",
        "2017-10-09 07:01:55+08:00",
        "2017-10-09T07:01:55.5-0730",
        "2017-10-09T07:01Z",
    ],
)
def test_dates_that_are_read(tmp_path, date):
    path = tmp_path / "t.csv"
    path.write_text(f"timestamp,duration,num_gpus\n{date},6,1\n")
    assert load(path, "philly")["submit_time"].tolist() == [0.0]


@pytest.mark.parametrize("text", ["True", "0x10", "１２", "1_0", "1,5", "1e", "--1", "1 2", "٣"])
@pytest.mark.parametrize("place", [1, 2, 5])
def test_numbers_are_plain_decimals(fails, text, place):
    fields = ["2", "2", "53", "157", "x", "127", "26"]
    fields[place] = f'"{text}"'
    column = HEAD.split(",")[place]
    message = fails("\n".join([HEAD, *ROWS[:2], ",".join(fields)]) + "\n")
    assert message.startswith(f"4:{column}: not a number ({text}); ")


@pytest.mark.parametrize(
    ("column", "value", "rule"),
    [
        ("submit_time", "1e10", "too large (1e10); a submit time is seconds from the start"),
        ("submit_time", "1e30", "too large"),
        ("duration", "1e18", "too large (1e18); a duration is seconds above 0, at most"),
        ("duration", "1e-7", "too short (1e-7); a duration is at least 1e-06 s"),
        ("iterations", "1e300", "too large (1e300); a number of iterations is 0 to"),
    ],
)
def test_numbers_beyond_what_a_float_carries(fails, column, value, rule):
    fields = dict(zip(HEAD.split(","), ROWS[1].split(","), strict=True)) | {column: value}
    message = fails(text(ROWS[0], ",".join(fields.values())))
    assert message.startswith(f"3:{column}: {rule}")


@pytest.mark.parametrize(
    ("format", "content", "start"),
    [
        (
            "pcs",
            "app_id,submit_time,service,num_jobs,sleep_time\n0,0,9,1,1e308\n1,0,9,1,1e308\n",
            "2:sleep_time: too large (1e308); a gap is 0 to 8,589,934,592 s",
        ),
        (
            "pcs",
            "app_id,submit_time,service,num_jobs,sleep_time\n0,0,1e30,4,0\n",
            "2:service: too large (1e30); ",
        ),
        (
            "alibaba-openb",
            "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
            "p1,1,1000,1,1e308,-1e308\n",
            "2:scheduled_time: negative (-1e308); ",
        ),
        (
            "alibaba-openb",
            "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
            "p1,1,1000,1e17,5,1\n",
            "2:creation_time: too large (1e17); ",
        ),
        (
            "gavel",
            "A3C\tmain.py\trl\t--n\t0\t1e300\t1\t1\t-1\t0\n",
            "1:steps: too large (1e300); a job has 1 to 9,007,199,254,740,992 steps",
        ),
    ],
)
def test_large_numbers_of_other_formats(fails, format, content, start):
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        assert fails(content, format).startswith(start)


@pytest.mark.parametrize(
    ("row", "start"),
    [
        ("2,2,53,157,x,1\x1b]0;pwn\x07,26", r"4:duration: not a number (1\x1b]0;pwn\x07); "),
        ("2,2,53,157,a\x1b[31m,127,26", r"4:model_name: control characters (a\x1b[31m); "),
        ("a\x07,2,53,157,x,127,26", r"4:job_id: control characters (a\x07); an id is a whole"),
        ("a\u202eb,2,53,157,x,127,26", r"4:job_id: control characters (a\u202eb); "),
        ('"a\nb",2,53,157,x,127,26', r"4:job_id: control characters (a b); "),
        (f"{'a' * 1001},2,53,157,x,127,26", "4:job_id: too long (aaa"),
        (f"2,2,53,157,{'a' * 1001},127,26", "4:model_name: too long (aaa"),
    ],
)
def test_text_is_printable_and_of_bounded_length(fails, row, start):
    message = fails(text(*ROWS[:2], row))
    assert message.startswith(start)
    assert message.isprintable()


def test_a_header_with_control_characters(fails):
    message = fails(text(ROWS[0] + ",1", head=HEAD + ",\x1b]0;x\x07"))
    assert message.startswith(r"1:\x1b]0;x\x07: control characters in the name of a column")


def test_printable_text_of_any_script_is_kept(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text(text(*ROWS[:2], "任务\u00a07,2,53,157,modèle é,127,26"), encoding="utf-8")
    frame = load(path, "tiresias")
    assert frame["job_id"].tolist()[2] == "任务\u00a07"
    assert frame["model"].tolist()[2] == "modèle é"


def test_too_many_columns_are_refused_at_once(fails):
    extra = [f"c{n}" for n in range(300_000)]
    content = text(ROWS[0] + ",1" * len(extra), head=",".join([HEAD, *extra]))
    start = time.process_time()
    assert fails(content) == "1: 300,007 columns; at most 1,000 are read: leave some out"
    assert time.process_time() - start < 5


def test_a_thousand_columns_are_read(tmp_path):
    path = tmp_path / "jobs.csv"
    extra = [f"c{n}" for n in range(993)]
    path.write_text(text(ROWS[0] + ",1" * len(extra), head=",".join([HEAD, *extra])))
    assert load(path, "tiresias").attrs["unread"] == ["interval", *extra]


def test_only_regular_files_of_bounded_size_are_read(tmp_path):
    pipe = tmp_path / "pipe"
    large = tmp_path / "large.csv"
    os.mkfifo(pipe)
    with large.open("wb") as stream:
        stream.truncate(2**31 + 1)
    link = tmp_path / "link"
    link.symlink_to(pipe)
    for path, message in [
        (pipe, "a pipe or device; write its content to a file first"),
        (link, "a pipe or device; write its content to a file first"),
        ("/dev/zero", "a pipe or device; write its content to a file first"),
        (large, "2,147,483,649 bytes; at most 2 GiB are read"),
    ]:
        with pytest.raises(TraceError) as caught:
            load(path, "tiresias")
        assert str(caught.value) == f"{path}: {message}"
    with pytest.raises(TraceError, match="no such file, nor a public trace"):
        load("a" * 5000, "tiresias")


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs /proc")
def test_a_file_of_unknown_size_is_refused():
    with pytest.raises(TraceError, match="/proc/self/status: changes while it is read"):
        load("/proc/self/status", "tiresias")
