"""The independent reading of Muri's simulator gives the published numbers."""

from __future__ import annotations

import muri_reference as reference
import pytest
from muri_reference_groups import group_period
from muri_reference_sharing import visits

from repro.perf.muri_models import muri_profiles

FOLDER = "Rivendile+Muri/simulator/trace-data"
UNMATCHED = {"blossom": False}
WORST = {"ordering": "worst"}

# trace, policy, options, average JCT, makespan, 99th percentile of JCT; as published
# (None: not published)
DIGITS = [
    ("trace3", "srtf", {}, "193081.796", "8174135.28", "4538890.607"),
    ("trace3", "srsf", {}, "185021.8802", "8174135.28", "4189699.177"),
    ("trace3", "tiresias", {}, "347213.2481", "8174226.28", "4983397.254"),
    ("trace3", "antman", {}, "305453.9407", "8174140.28", "3904420.793"),
    ("trace3", "muri-l", UNMATCHED, "96016.95407", "8174135.28", None),
    ("trace3_pr", "srtf", {}, "844394.78", "7261795.828", "6363099.549"),
    ("trace3_pr", "srsf", {}, "798057.6829", "6907790.403", "6228160.594"),
    ("trace3_pr", "tiresias", {}, "2213110.128", "6761641.42", "6739568.999"),
    ("trace3_pr", "antman", {}, "2674393.018", "5799634.744", "5772254.906"),
    # the two that the last bit of the solo time decides
    ("trace4_pr", "srtf", {}, "1430856.446", "14272665.007687", "9443500.203"),
    ("trace4_pr", "tiresias", {}, "2674022.636", "12584603.56365", "11219877.952119"),
]

# the same; matched groups have ties, which the published numbers break in a way of their own:
# breaking them at random moves the three figures by up to 3, 2 and 12 %
NEARLY = [
    ("trace3", "muri-s", {}, 85502.55387, 8174135.28, 992405.062),
    ("trace3", "muri-l", {}, 88686.97313, 8174135.28, 927167.0483),
    ("trace3", "muri-l", WORST, 146324.4084, 8174135.28, None),
    ("trace3_pr", "muri-l", {"packing_num": 2}, 1348968.422, 5244800.59, None),
    ("job_type_3", "muri-s", {"autopack": True}, 90861.63341, None, None),
    ("job_type_3", "muri-l", {"autopack": True}, 101383.3536, None, None),
]


def overheads():
    table = muri_profiles()
    keys = zip(table["model"], table["num_gpus"], strict=True)
    return dict(zip(keys, table["start_overhead"].tolist(), strict=True))


def measured(mirror, trace, policy, options):
    rows = reference.read_rows(mirror / FOLDER / f"{trace}.csv")
    jobs = reference.simulate(rows, policy, overheads(), **options)
    return reference.average_jct(jobs), reference.makespan(jobs), reference.p99_jct(jobs)


def name(case):
    return "-".join([*case[:2], *(str(value) for value in case[2].values())])


@pytest.mark.parametrize("case", DIGITS, ids=name)
def test_deterministic_schedules_have_the_published_digits(mirror, case):
    trace, policy, options, *published = case
    for value, printed in zip(measured(mirror, trace, policy, options), published, strict=True):
        if printed is not None:
            digits = len(printed.partition(".")[2])
            assert value == pytest.approx(float(printed), rel=0, abs=0.501 * 10**-digits)


@pytest.mark.parametrize("case", NEARLY, ids=name)
def test_matched_groups_come_near_the_published_numbers(mirror, case):
    trace, policy, options, *published = case
    values = measured(mirror, trace, policy, options)
    for value, printed, rel in zip(values, published, (0.04, 0.03, 0.12), strict=True):
        if printed is not None:
            assert value == pytest.approx(printed, rel=rel)


def test_themis_comes_near_the_published_average(mirror):
    average, makespan, _ = measured(mirror, "trace3", "themis", {})
    assert average == pytest.approx(397058.802, rel=0.1)
    assert makespan == pytest.approx(8172104.51, rel=0.001)


@pytest.mark.parametrize(
    ("models", "best", "worst"),
    [
        (("dqn", "vgg16"), 0.454, 0.563),
        (("bert", "vgg16"), 0.228, 0.345),
        (("gpt2", "a2c"), 0.528, 0.938),
    ],
)
def test_period_of_two_models_on_one_gpu(models, best, worst):
    table = muri_profiles().query("num_gpus == 1").set_index("model")
    rows = table[["stage_data", "stage_gpu", "stage_network"]]
    stages = [tuple(rows.loc[model]) for model in models]
    assert group_period(stages, "best") == pytest.approx(best, abs=1e-9)
    assert group_period(stages, "worst") == pytest.approx(worst, abs=1e-9)


def test_visits_of_a_guest_by_hand():
    """Host (1, 2, 1): data fits 3 a visit; 4 = one whole and 1 left, which opens a second."""
    assert visits((4.0, 0.0, 0.0), (1.0, 2.0, 1.0)) == 2
    # 1 of data leaves 2 for the GPU stage, but the host's network stage is only 1 long: 3 - 1 = 2
    # is one more visit exactly; the network stage of 4 is one visit (3) and 1 left, as long as c0
    assert visits((1.0, 3.0, 4.0), (1.0, 2.0, 1.0)) == 3


def row(model, gpus, submit, iterations, iteration_ms):
    return {
        "num_gpu": gpus,
        "submit_time": submit,
        "iterations": iterations,
        "model_name": model,
        "duration": iterations * iteration_ms,
        "iteration_time": iteration_ms,
        "priority": 0,
        "resource_time_0": 1,
        "resource_time_1": 1,
        "resource_time_2": 1,
    }


def test_overhead_is_charged_in_every_interval_but_the_last():
    """A runs alone throughout; B's arrival and end cut its time into three intervals."""
    rows = [row("a", 1, 0, 1000, 1000), row("b", 1, 100_000, 100, 1000)]
    jobs = reference.simulate(rows, "srtf", {("a", 1): 10.0, ("b", 1): 5.0})
    b_end = 100 + 101.5
    done = (100 - 10) / 1.015 + (b_end - 100 - 10) / 1.015
    assert jobs[1].end == pytest.approx(b_end)
    assert jobs[0].end == pytest.approx(b_end + (1000 - done) * 1.015)
    assert (jobs[0].start, jobs[1].start) == (0.0, 100.0)
