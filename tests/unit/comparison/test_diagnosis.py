"""Diagnosis of a trace: trials of policies, order of findings, JSON."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from repro.base.errors import ParamError, TraceError
from repro.comparison.doctor import diagnose
from repro.comparison.trials import Trial, findings_of, kinds_of_jobs, trials
from repro.model.cluster.spec import Cluster
from repro.model.policy import make


def frame_of(count=6, **columns):
    default = {
        "job_id": range(count),
        "submit_time": [10.0 * number for number in range(count)],
        "duration": [100.0 + number for number in range(count)],
        "num_gpus": [1] * count,
    }
    return pd.DataFrame(default | columns)


def found(diagnosis, code):
    return [finding for finding in diagnosis.findings if finding.code == code]


def test_a_sample_has_one_job_of_each_kind():
    frame = frame_of(num_gpus=[1, 1, 2, 1, 2, 1], slo=[1.0, None, 1.0, 2.0, 2.0, None])
    sample = kinds_of_jobs(frame)
    assert sample["job_id"].tolist() == [0, 1, 2]
    assert sample["submit_time"].tolist() == [0, 0, 0]


def test_kinds_beyond_the_trial_arrive_later():
    sample = kinds_of_jobs(frame_of(30, num_gpus=range(1, 31)))
    assert (sample["submit_time"] == 0).sum() == 24
    assert len(sample) == 30


def test_a_trial_refuses_ignores_and_lacks():
    names = ("srtf", "allox", "muri-s", "gavel-hierarchical")
    chosen = {name: make(name) for name in names}
    frame = frame_of(num_gpus=[1] * 5 + [2], vc=["a"] * 6)
    done = trials(frame, Cluster.parse("2x4"), chosen)
    assert done["srtf"] == Trial("", ("vc",), "", (), types_alike=False)
    assert done["allox"].refuses.startswith("job 5 asks for 2 GPUs; AlloX places jobs of one GPU")
    assert done["muri-s"].refuses.startswith("no column 'stage_storage'")
    assert done["muri-s"].lacks == "stage times, iteration times"
    assert done["gavel-hierarchical"].ignores == ()


def test_a_missing_price_brings_no_advice_on_columns():
    (refused,) = found(diagnose(frame_of(), "1x4:h100,1x4:v100", ["gavel-min-cost"]), "refused")
    assert "no preemptible price of GPU type 'h100'" in refused.what
    assert refused.advice == ""


def test_refusals_are_errors_of_named_policies_only():
    frame = frame_of()
    (named,) = found(diagnose(frame, "2x4", ["srtf", "muri-s", "muri-l"]), "refused")
    assert (named.level, named.count) == ("error", 2)
    assert named.what.startswith("muri-s, muri-l cannot run: no column")
    assert named.advice == (
        "repro trace dress FILE --out dressed.csv samples models for the jobs; repro compare does "
        "so by itself"
    )
    results = {
        "srtf": Trial("", (), "", (), types_alike=False),
        "edf": Trial("needs slo", (), "", (), types_alike=False),
    }
    (note,) = findings_of(results, frame, are_named=False, dress="dress", has_types=False)
    assert (note.level, note.what, note.advice) == ("note", "edf cannot run: needs slo", "")
    del results["srtf"]
    (error,) = findings_of(results, frame, are_named=False, dress="dress", has_types=False)
    assert error.level == "error"


def test_lacking_throughputs_and_equal_types():
    diagnosis = diagnose(frame_of(), "4xv100,4xk80", ["srtf", "gavel-las"])
    (lacks,) = found(diagnosis, "lacks")
    assert (lacks.level, lacks.count) == ("warning", 1)
    assert lacks.what == "gavel-las would read throughputs by GPU type, which the trace lacks"
    (alike,) = found(diagnosis, "types-alike")
    assert alike.what == "all GPU types count as equally fast for srtf, gavel-las"


@pytest.mark.parametrize(
    ("cluster", "advice"),
    [
        (
            "2x4:t4",
            "--types wished runs jobs on the type in column gpu_type, unless the policy chooses it",
        ),
        (
            "2x4",
            "--types wished runs jobs on the type in column gpu_type on a cluster such as 1x8:v100",
        ),
    ],
)
def test_columns_that_none_or_few_read(cluster, advice):
    frame = frame_of(vc=["a"] * 6, user=["u"] * 6, gpu_type=["t4"] * 6)
    diagnosis = diagnose(frame, cluster, ["srtf", "srsf", "gavel-hierarchical"])
    (unread,) = found(diagnosis, "columns-unread")
    assert (unread.count, unread.what) == (
        2,
        "none of 3 policies reads the columns gpu_type, user",
    )
    assert unread.advice == advice
    (few,) = found(diagnosis, "columns-read-by-few")
    assert (few.count, few.what) == (1, "gavel-hierarchical alone reads column vc")


def test_notes_on_policies_are_grouped():
    diagnosis = diagnose(frame_of(), "2x4", ["hived", "liquid", "srtf"])
    (note,) = found(diagnosis, "policy-note")
    assert note.count == 2
    assert note.what.startswith("hived, liquid: makes the decisions of 'liquid-pack'")


def test_many_policies_are_named_by_those_left_over():
    results = {f"p{number}": Trial("no", (), "", (), types_alike=False) for number in range(12)}
    results["other"] = Trial("", (), "", (), types_alike=False)
    (refused,) = findings_of(results, frame_of(), are_named=False, dress="", has_types=False)
    assert refused.what == "12 of 13 policies (all but other) cannot run: no"
    del results["other"]
    (refused,) = findings_of(results, frame_of(), are_named=False, dress="", has_types=False)
    assert refused.what == "all 12 policies cannot run: no"


def test_jobs_that_never_fit_do_not_hide_what_policies_do():
    frame = frame_of(num_gpus=[1, 1, 1, 1, 1, 99])
    diagnosis = diagnose(frame, "2x4", ["srtf"])
    assert diagnosis.findings[0].code == "never-fit"
    assert diagnosis.trials["srtf"].refuses == ""
    assert diagnosis.queue.jobs == 5
    assert diagnosis.has_errors
    all_wide = diagnose(frame_of(num_gpus=[99] * 6), "2x4", ["srtf"])
    assert (all_wide.trials, all_wide.queue) == ({}, None)


def test_findings_go_from_the_worst_to_the_mildest_and_into_json():
    frame = frame_of(num_gpus=[1, 1, 1, 1, 3, 99], duration=[0.5] * 6)
    diagnosis = diagnose(frame, "2x4", ["srtf", "tiresias-l"])
    levels = [finding.level for finding in diagnosis.findings]
    assert levels == sorted(levels, key=["error", "warning", "note"].index)
    whole = json.loads(json.dumps(diagnosis.to_dict(), allow_nan=False))
    assert whole.keys() == {"facts", "queue", "findings", "counts", "policies"}
    assert whole["findings"][0] == {
        "level": "error",
        "code": "never-fit",
        "what": "1 job demands more GPUs than the cluster has (8), 93.4% of the GPU-seconds",
        "count": 1,
        "jobs": [5],
        "advice": "leave them out or take a larger cluster; repro simulate refuses them",
    }
    assert whole["counts"]["error"] == 1
    assert whole["policies"]["srtf"]["refuses"] == ""
    assert whole["facts"]["loads"]["all GPUs"]["gpus"] == 8


def test_a_unit_finding_covers_those_that_follow_from_it():
    codes = [f.code for f in diagnose(frame_of(duration=[4e7] * 6), "2x4", ["srtf"]).findings]
    assert "unit-too-small" in codes
    assert "longer-than-a-year" not in codes


def test_bad_input():
    frame = frame_of()
    with pytest.raises(ParamError, match="a frame has no reader"):
        diagnose(frame, "2x4", format="helios")
    for name in ("path", "format", "drop_bad_rows"):
        with pytest.raises(ParamError, match=f"^options: '{name}' is not an option of a reader"):
            diagnose("jobs.csv", "2x4", options={name: "helios"})
    with pytest.raises(ParamError, match="names no GPU types"):
        diagnose(frame, "2x4", throughputs="gavel-throughputs")
    with pytest.raises(ParamError, match="policies: none"):
        diagnose(frame, "2x4", [])
    with pytest.raises(TraceError, match="not positive"):
        diagnose(frame_of(duration=[-1.0] * 6), "2x4")


def test_two_policies_of_one_name_need_labels():
    chosen = [make("muri-l", max_group=4), make("muri-l", max_group=2)]
    with pytest.raises(ParamError, match="two are named 'muri-l'; give a mapping of labels"):
        diagnose(frame_of(), "2x4", chosen)
    diagnosis = diagnose(frame_of(), "2x4", {"fours": chosen[0], "pairs": chosen[1]})
    assert list(diagnosis.trials) == ["fours", "pairs"]
