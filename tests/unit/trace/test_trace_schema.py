from __future__ import annotations

import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from repro import simulate
from repro.base.errors import TraceError
from repro.files.checks import Source
from repro.trace.schema import COLUMNS, MAX_TIME_S, MIN_DURATION_S, check_fits, validate


def jobs(**changes: object) -> pd.DataFrame:
    columns = {
        "job_id": [0, 1, 2],
        "submit_time": [0, 10, 20],
        "duration": [60, 30, 90],
        "num_gpus": [1, 2, 4],
    }
    return pd.DataFrame({name: value for name, value in (columns | changes).items() if value})


def fails(frame: pd.DataFrame, *parts: str, cluster_gpus: int | None = None) -> str:
    with pytest.raises(TraceError) as caught:
        validate(frame, "jobs.csv", cluster_gpus)
    message = str(caught.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message
    return message


def test_types_and_index():
    frame = validate(jobs())
    kinds = [str(frame[name].dtype) for name in ("job_id", "submit_time", "duration", "num_gpus")]
    assert kinds == ["int64", "float64", "float64", "int64"]
    assert list(frame.index) == [0, 1, 2]


def test_sorted_by_submit_time_and_stable():
    frame = validate(jobs(job_id=["c", "a", "b"], submit_time=[5, 0, 5]))
    assert frame["job_id"].tolist() == ["a", "c", "b"]


def test_input_is_left_alone():
    frame = jobs(submit_time=[5, 0, 5])
    before = frame.copy()
    validate(frame)
    pd.testing.assert_frame_equal(frame, before)


def test_text_numbers_are_numbers():
    frame = validate(jobs(duration=["60", " 30", "9e1"], num_gpus=["1", "2", "4.0"]))
    assert frame["duration"].tolist() == [60.0, 30.0, 90.0]
    assert frame["num_gpus"].tolist() == [1, 2, 4]


@pytest.mark.parametrize("name", [n for n, column in COLUMNS.items() if column.required])
def test_missing_column(name):
    fails(jobs(**{name: None}), f"jobs.csv:{name}: missing column", "found")


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        ({"duration": [60, -3, 90]}, ("jobs.csv:row 1:duration: not positive (-3)", "above 0")),
        ({"duration": [60, 30, 0]}, ("row 2:duration: not positive (0)",)),
        ({"duration": [60, np.nan, 90]}, ("row 1:duration: missing value",)),
        ({"duration": [60, np.inf, 90]}, ("row 1:duration: not finite (inf)",)),
        ({"duration": [60, "abc", 90]}, ("row 1:duration: not a number (abc)",)),
        ({"duration": [True, False, True]}, ("row 0:duration: not a number (True)",)),
        ({"submit_time": [0, -10, 20]}, ("row 1:submit_time: negative (-10)",)),
        ({"submit_time": [0, None, 20]}, ("row 1:submit_time: missing value",)),
        ({"num_gpus": [1, 0, 4]}, ("row 1:num_gpus: too small (0)", "1 to 1,000,000 whole GPUs")),
        ({"num_gpus": [1, -2, 4]}, ("row 1:num_gpus: too small (-2)",)),
        ({"num_gpus": [1, 2.5, 4]}, ("row 1:num_gpus: not a whole number (2.5)",)),
        ({"num_gpus": [1, 2, 10**7]}, ("row 2:num_gpus: too large (10000000)",)),
        ({"job_id": [0, 1, 0]}, ("row 2:job_id: duplicate id (0)", "first used on row 0")),
        ({"job_id": ["a", "b", "b"]}, ("row 2:job_id: duplicate id (b)", "first used on row 1")),
        ({"job_id": [0, None, 2]}, ("row 1:job_id: missing value",)),
        ({"job_id": ["a", " ", "c"]}, ("row 1:job_id: missing value (empty)",)),
        ({"job_id": [0, 1.5, 2]}, ("row 1:job_id: neither whole number nor text (1.5)",)),
        ({"gpu_share": [0.5, 0.0, 1.0]}, ("row 1:gpu_share: not positive",)),
        ({"gpu_share": [0.5, 1.5, 1.0]}, ("row 1:gpu_share: too large (1.5)",)),
        ({"batch_size": [1, 2, 2.5]}, ("row 2:batch_size: not a whole number",)),
        ({"batch_size": [1, 2, 10**30]}, ("row 2:batch_size: too large",)),
        ({"job_id": [0, 1e300, 2]}, ("row 1:job_id: neither whole number nor text",)),
        ({"num_ps": [1, None, 2]}, ("row 1:num_ps: missing value",)),
        ({"stage_gpu": [1, -1, 2]}, ("row 1:stage_gpu: negative (-1)",)),
        ({"min_gpus": [1, 3, 1], "max_gpus": [1, 2, 1]}, ("row 1:min_gpus: above max_gpus (3)",)),
    ],
)
def test_bad_rows(changes, parts):
    fails(jobs(**changes), *parts)


@pytest.mark.parametrize(
    ("ids", "kind", "first"),
    [
        ([2**63, 1, 2], "str", str(2**63)),
        (np.array([2**63, 1, 2], dtype=np.uint64).tolist(), "str", str(2**63)),
        ([-(2**63), 1, 2**63 - 1], "int64", -(2**63)),
        ([3.0, 1.0, 2.0], "int64", 3),
        (["3", 1, 2], "str", "3"),
        ([f"{10**400}", "b", "c"], "str", f"{10**400}"),
    ],
)
def test_ids_are_integers_or_text(ids, kind, first):
    frame = validate(jobs(job_id=ids))
    assert frame["job_id"].dtype == kind
    assert frame["job_id"].iloc[0] == first


def test_the_first_row_of_a_repeated_id_has_its_label():
    frame = jobs(job_id=[7, 8, 7]).set_axis([10, 11, 12])
    fails(frame, "row 12:job_id: duplicate id (7)", "first used on row 10")
    named = frame.set_axis(["x", "y", "z"])
    fails(named, "row 2:job_id: duplicate id (7)", "first used on row 0")


def test_many_bad_rows_are_counted():
    fails(jobs(duration=[-1, -2, -3]), "row 0:duration", "(2 more like it)")


def test_optional_gaps_are_kept():
    frame = validate(jobs(slo=[1.2, None, 2.0], user=["a", None, "b"], gpu_type=["v100", "", "x"]))
    assert frame["slo"].isna().tolist() == [False, True, False]
    assert frame["user"].isna().tolist() == [False, True, False]


def test_whole_numbers_are_names_without_a_point():
    frame = validate(jobs(vc=[1.0, None, 2.0], user=[1, 2, 3], model=[1.5, 2.0, "a"]))
    assert frame["vc"].dropna().tolist() == ["1", "2"]
    assert frame["user"].tolist() == ["1", "2", "3"]
    assert frame["model"].tolist() == ["1.5", "2", "a"]


def test_other_columns_pass_through():
    frame = validate(jobs(comment=["x", "y", "z"], submit_time=[2, 1, 0]))
    assert frame["comment"].tolist() == ["z", "y", "x"]


def test_no_jobs_and_column_twice():
    fails(jobs().iloc[:0], "jobs.csv: no jobs")
    twice = pd.concat([jobs(), jobs()["duration"]], axis=1)
    fails(twice, "column 'duration' appears twice")


def test_job_that_never_fits_is_named():
    fails(jobs(), "row 2:num_gpus: more GPUs than the cluster has (4)", "job 2", cluster_gpus=3)
    assert len(validate(jobs(), cluster_gpus=4)) == 3
    with pytest.raises(TraceError, match="job 2 can never start on 3 GPUs"):
        check_fits(validate(jobs()), "jobs", 3)


def test_a_source_gives_line_and_file_column():
    source = Source("t.csv", {"num_gpus": "gpus"}, lambda row: row + 2, lambda row, column: "0x")
    with pytest.raises(TraceError, match=r"^t\.csv:3:gpus: too small \(0x\); "):
        validate(jobs(num_gpus=[1, 0, 1]), source)


def test_long_values_are_cut_and_newlines_removed():
    message = fails(jobs(duration=["1", "a\nb" * 100, "2"]), "not a number (a ba ba b")
    assert len(message) < 200


def test_a_million_rows_in_about_a_second():
    rng = np.random.default_rng(0)
    rows = 1_000_000
    frame = pd.DataFrame(
        {
            "job_id": np.arange(rows),
            "submit_time": rng.random(rows),
            "duration": rng.random(rows) + 1,
            "num_gpus": rng.integers(1, 64, rows),
        }
    )
    start = time.process_time()
    validate(frame, cluster_gpus=64)
    assert time.process_time() - start < 3


@pytest.mark.parametrize(
    ("changes", "parts"),
    [
        (
            {"submit_time": [0, 1e15, 20]},
            ("row 1:submit_time: too large (1000000", "8,589,934,592"),
        ),
        ({"submit_time": [0, 1e17, 20]}, ("row 1:submit_time: too large",)),
        ({"duration": [60, 30, 1e10]}, ("row 2:duration: too large (10000000000)",)),
        ({"duration": [60, 9e-7, 1]}, ("row 1:duration: too short", "at least 1e-06 s")),
        (
            {"submit_time": [0, 1e9, 1e9], "duration": [60, 0.1, 90]},
            ("row 1:duration: too short (0.1)", " s to 1e-07 s", "from the start"),
        ),
        ({"duration": [60, True, 90.0]}, ("row 1:duration: not a number (True)",)),
        ({"duration": ["60", "1_0", "9"]}, ("row 1:duration: not a number (1_0)",)),
        ({"num_gpus": ["1", "２", "4"]}, ("row 1:num_gpus: not a number (２)",)),
        ({"priority_weight": [1, 1e-300, 1]}, ("row 1:priority_weight: too small", "1e-9 to 1e9")),
        ({"slo": [1, 1e300, 1]}, ("row 1:slo: too large",)),
        ({"iteration_time": [1, 1e300, 1]}, ("row 1:iteration_time: too large",)),
        ({"user": ["a", "b\x1b[2J", "c"]}, (r"row 1:user: control characters (b\x1b[2J)",)),
        ({"job_id": ["a", "b\x00", "c"]}, (r"row 1:job_id: control characters (b\x00)",)),
    ],
)
def test_what_a_float_or_a_message_cannot_carry(changes, parts):
    message = fails(jobs(**changes), *parts)
    assert message.isprintable()


@settings(max_examples=50)
@given(data=st.data())
def test_accepted_times_give_true_results(data):
    submit = st.floats(0, MAX_TIME_S)
    length = st.floats(MIN_DURATION_S, MAX_TIME_S)
    rows = data.draw(st.lists(st.tuples(submit, length, st.integers(1, 4)), min_size=1, max_size=5))
    held = [row for row in rows if accepted(*row)]
    assume(held)
    frame = validate(table(held))
    alone = simulate(frame, f"1x{4 * len(held)}", "best-effort")
    # with room for all, each job takes its duration, to a millionth
    assert np.allclose(alone.jobs["jct"], alone.jobs["duration"], rtol=2e-6, atol=0)
    for result in (alone, simulate(frame, "1x4", "srtf")):
        facts = result.summary()
        assert 0 < facts["utilisation"] <= 1 + 1e-6
        assert (result.jobs["queueing"] >= -2e-6 * result.jobs["duration"]).all()
        assert facts["n_finished"] == len(held)
        assert 0 < facts["avg_jct"] < np.inf


def table(rows):
    submit, length, gpus = zip(*rows, strict=True)
    columns = {"submit_time": submit, "duration": length, "num_gpus": gpus}
    return pd.DataFrame({"job_id": range(len(rows))} | columns)


def accepted(*row):
    try:
        return len(validate(table([row])))
    except TraceError:
        return 0


@pytest.mark.parametrize(
    "ids",
    [
        [True, False, True],
        pd.array([True, False, True], dtype="boolean"),
        [1j, 2j, 3j],
        pd.interval_range(0, 3),
        [{"a": 1}, {"a": 2}, {"a": 3}],
        [[1], [2], [3]],
        [(1, 2), (2, 3), (3, 4)],
        [b"a", b"b", b"c"],
        pd.Series([True, "x", 2], dtype=object),
    ],
)
def test_ids_of_another_sort_are_refused(ids):
    with pytest.raises(TraceError, match="row 0:job_id: neither whole number nor text") as caught:
        validate(jobs().assign(job_id=ids), "jobs.csv")
    assert "an id is a whole number or text" in str(caught.value)


def test_categories_are_ids_as_their_values():
    assert validate(jobs().assign(job_id=pd.Categorical([7, 5, 6])))["job_id"].tolist() == [7, 5, 6]
    assert validate(jobs().assign(job_id=pd.Categorical([*"cab"])))["job_id"].tolist() == [*"cab"]


def test_complex_numbers_are_no_times():
    for values in ([1 + 2j] * 3, np.array([1 + 0j] * 3), pd.Series([1, 2j, 3], dtype=object)):
        with pytest.raises(TraceError, match=r"duration: not a number \("):
            validate(jobs().assign(duration=values), "jobs.csv")


DATES = pd.date_range("2020-01-01", periods=3, freq="5s")
SPANS = pd.to_timedelta([5, 10, 15], unit="s")
PERIODS = pd.period_range("2020-01-01", periods=3, freq="5s")


@pytest.mark.parametrize("values", [DATES, DATES.tz_localize("UTC"), SPANS, PERIODS])
@pytest.mark.parametrize("kind", [None, object])
def test_the_advice_on_dates_and_spans_works(values, kind):
    trace = jobs().assign(submit_time=pd.Series(values, dtype=kind))
    with pytest.raises(TraceError, match=r"jobs\.csv: column 'submit_time' holds ") as caught:
        validate(trace, "jobs.csv")
    advice = str(caught.value).partition("give seconds: ")[2]
    seconds = eval(advice, {"trace": trace, "pd": pd})
    assert np.diff(seconds).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("column", ["job_id", "user"])
@pytest.mark.parametrize("values", [DATES, SPANS, PERIODS])
def test_dates_as_names_are_to_become_text(column, values):
    trace = jobs().assign(**{column: values})
    with pytest.raises(TraceError, match="give text: ") as caught:
        validate(trace, "jobs.csv")
    advice = str(caught.value).partition("give text: ")[2]
    trace[column] = eval(advice, {"trace": trace})
    assert validate(trace)[column].nunique() == 3


def test_predicted_durations_are_for_all_jobs_or_none():
    frame = validate(jobs(predicted_duration=["90", 1.5, 1e6]))
    assert frame["predicted_duration"].tolist() == [90.0, 1.5, 1e6]
    empty = validate(jobs(predicted_duration=[None, "", np.nan]))
    assert empty["predicted_duration"].isna().all()
    accepted = (
        "a predicted duration is seconds above 0, at most 8,589,934,592 (272 years, exact to a "
        "microsecond); give it for all jobs, or leave the column out"
    )
    for cells, rule in (
        ([90, None, 3], "missing value"),
        ([90, 0, 3], "not positive"),
        ([90, -1, 3], "not positive"),
        ([90, np.inf, 3], "not finite"),
        ([90, 1e10, 3], "too large"),
        ([90, "soon", 3], "not a number"),
    ):
        fails(jobs(predicted_duration=cells), ":predicted_duration: ", rule, accepted)
