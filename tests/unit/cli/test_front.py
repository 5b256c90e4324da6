"""`repro front`: a front on the terminal, in a file and as JSON; bad input in one line."""

import csv
import json

import pytest

from repro import load, make, simulate
from repro.cli import main
from repro.model.policy import policies
from repro.trace import synth

PREFER = ("--prefer", "jct=avg", "--prefer", "pred_err=99")
SMALL = ("--budget", "12", "--population", "6", "-j", "1")


@pytest.fixture(scope="module")
def jobs(tmp_path_factory):
    path = tmp_path_factory.mktemp("jobs") / "jobs.csv"
    synth.make("pcs-workload", 3, jobs=80, load=1.4, num_gpus=16).to_csv(path, index=False)
    return path


def on(jobs):
    """Return the words that name the trace and the cluster."""
    return ["--trace", str(jobs), "--format", "repro", "--cluster", "1x16"]


def front(capsys, jobs, *words, code=0):
    assert main(["front", *on(jobs), *map(str, words)]) == code
    return capsys.readouterr()


def test_json_is_one_object_whose_rows_give_what_they_say(capsys, jobs):
    shown = front(capsys, jobs, *PREFER, *SMALL, "--json")
    told = json.loads(shown.out)
    assert shown.err == "" and told["evaluations"] == 12
    assert told["objectives"] == ["avg_jct_s", "p99_pred_err_pct"]
    for row in told["front"][:3]:
        bounds = tuple(row["thresholds"])
        weights = tuple(row["weights"])
        rest = {name: row[name] for name in ("zeta_min", "delta")}
        policy = make("pcs", "pcs", thresholds=bounds, weights=weights, **rest)
        summary = simulate(load(jobs, "repro"), "1x16", policy, rules="pcs").summary()
        assert summary["avg_jct"] == pytest.approx(row["avg_jct_s"])
        assert summary["p99_pred_err"] == pytest.approx(row["p99_pred_err_pct"])


def test_a_file_registers_the_policy_whose_parameters_are_searched(capsys, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(
        "from dataclasses import dataclass\n\nimport repro\n\n\n"
        '@repro.register("by-width")\n'
        "@dataclass(frozen=True)\n"
        "class ByWidth(repro.Order):\n"
        "    weight: float = 1.0\n\n"
        "    def key(self, view, job):\n"
        "        return self.weight * view.gpus(job)\n"
    )
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n0,0,100,4\n1,10,100,3\n")
    words = ["--trace", path, "--cluster", "1x4", "--prefer", "jct=avg", "--policy", "by-width"]
    words += ["--search", "weight=-1:1", "--method", "random", *SMALL, "--extra", mine]
    assert main(["front", *map(str, words[:-2])]) == 2
    assert "unknown policy 'by-width'" in capsys.readouterr().err
    try:
        assert main(["front", *map(str, words), "--json"]) == 0
        (best, *_) = json.loads(capsys.readouterr().out)["front"]
        # with a weight above 0 the narrow job preempts the wide one at 10 s
        assert best["avg_jct_s"] == (150 if best["weight"] > 0 else 145)
    finally:
        policies._items.pop("by-width", None)


def test_lines_are_settings_of_a_simulation_and_the_front_is_a_file(capsys, jobs, tmp_path):
    out = tmp_path / "front.csv"
    shown = front(capsys, jobs, *PREFER, *SMALL, "--train", 60, "--out", out)
    assert "12 evaluated, " in shown.err
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == len(shown.out.splitlines()) > 1
    assert {"avg_jct_s", "test_avg_jct_s", "thresholds", "weights"} <= set(rows[0])
    line = shown.out.splitlines()[0]
    words = line.split(" --set ")[1:]
    words = [word for one in words for word in ("--set", one.strip())]
    simulation = ["simulate", *on(jobs), "--policy", "pcs", "--rules", "pcs"]
    assert main([*simulation, *words]) == 0


def test_settings_have_all_digits_of_the_sizes(capsys, tmp_path):
    path = tmp_path / "jobs.csv"
    durations = (12345674, 1234564, 10, 22345671, 50, 1234564)
    rows = [f"{job},{10 * job},{duration},1\n" for job, duration in enumerate(durations)]
    path.write_text("job_id,submit_time,duration,num_gpus\n" + "".join(rows))
    words = ["--trace", str(path), "--cluster", "1x1"]
    search = ["--prefer", "jct=avg", "--method", "random", *SMALL]
    assert main(["front", *words, *search, "--json"]) == 0
    (best,) = json.loads(capsys.readouterr().out)["front"]
    # six digits would name a smaller size, and so put a job into another class
    assert 1234564.0 in best["thresholds"]
    assert main(["front", *words, *search]) == 0
    settings = capsys.readouterr().out.split()[2:]
    assert main(["simulate", *words, "--policy", "pcs", "--rules", "pcs", *settings, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["avg_jct"] == best["avg_jct_s"]


def test_json_has_all_digits_of_the_file(capsys, tmp_path):
    path = tmp_path / "jobs.csv"
    # a third of a second has more than 15 decimals
    rows = [f"{job},{job},{(job % 5 + 4) / 3!r},1\n" for job in range(12)]
    path.write_text("job_id,submit_time,duration,num_gpus\n" + "".join(rows))
    out = tmp_path / "front.csv"
    words = ["--trace", str(path), "--cluster", "1x1", *PREFER, *SMALL, "--method", "random"]
    assert main(["front", *words, "--json", "--out", str(out)]) == 0
    points = json.loads(capsys.readouterr().out)["front"]
    table = list(csv.DictReader(out.open()))
    for name in ("avg_jct_s", "p99_pred_err_pct"):
        assert [point[name] for point in points] == [float(row[name]) for row in table]
    lists = [list(map(float, row["weights"].split())) for row in table]
    assert [point["weights"] for point in points] == lists


def test_options_of_the_format_and_bad_rows(capsys, tmp_path):
    head = "job_id,gpu_num,submit_time,start_time,end_time\n"
    rows = [
        f"{job},1,2020-01-01 00:00:0{job},2020-01-01 00:01:00,2020-01-01 00:02:00\n"
        for job in (0, 1, 2, 3, 3)
    ]
    log = tmp_path / "log.csv"
    log.write_text(head + "".join(rows))
    words = ["front", "--trace", str(log), "--format", "helios", "--cluster", "1x2"]
    words += [*PREFER, *SMALL]
    assert main(words) == 2
    assert "--set attempts=join" in capsys.readouterr().err
    assert main([*words, "--set", "attempts=join"]) == 0
    capsys.readouterr()
    assert main([*words, "--drop-bad-rows"]) == 0
    assert "repro: left out: rows of the trace (job_id: " in capsys.readouterr().err
    generated = ["front", "--trace", "philly-like", "--cluster", "1x2", *PREFER, *SMALL]
    assert main([*generated, "--drop-bad-rows"]) == 2
    assert "neither a file nor a public trace" in capsys.readouterr().err


def test_what_the_reader_did_not_use_is_said(capsys, tmp_path):
    pods = tmp_path / "pods.csv"
    head = "name,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time,qos\n"
    pods.write_text(head + "a,1,1000,0,100,0,LS\nb,1,1000,5,100,9,LS\nc,0,0,0,9,0,BE\n")
    words = ["--trace", str(pods), "--cluster", "1x1", *PREFER, "--budget", "2"]
    assert main(["front", *words, "--population", "2", "-j", "1"]) == 0
    assert capsys.readouterr().err.splitlines()[:3] == [
        "repro: not read by the format: columns of the file qos",
        "repro: left out: rows of the trace (no GPU: 1)",
        "repro: note: read in format alibaba-openb, by the contents of the file",
    ]


def test_columns_and_unit_of_the_file(capsys, jobs, tmp_path):
    renamed = tmp_path / "log.csv"
    frame = load(jobs, "repro")
    hours = frame.assign(
        arrival=frame["submit_time"] / 3600,
        duration=frame["duration"] / 3600,
        service=frame["service"] / 3600,
    )
    hours.drop(columns="submit_time").to_csv(renamed, index=False)
    words = [*PREFER, "--budget", "2", "--population", "2", "-j", "1", "--json"]
    of_seconds = json.loads(front(capsys, jobs, *words).out)["front"]
    mine = ["front", "--trace", str(renamed), "--cluster", "1x16", *words]
    assert main([*mine, "--map", "submit_time=arrival", "--unit", "h"]) == 0
    of_hours = json.loads(capsys.readouterr().out)["front"]
    assert [row["avg_jct_s"] for row in of_hours] == pytest.approx(
        [row["avg_jct_s"] for row in of_seconds]
    )
    mine[2] = "philly-like"
    assert main([*mine, "--unit", "h"]) == 2
    assert "--unit: 'philly-like' is neither a file nor a public" in capsys.readouterr().err


def test_a_setting_that_is_for_a_file_is_named(capsys):
    words = ["front", "--trace", "testbed", "--cluster", "1x32", "--prefer", "jct=avg"]
    assert main([*words, "--set", "attempts=join"]) == 2
    assert "--set attempts: 'testbed' is neither a file nor a public" in capsys.readouterr().err


def test_a_folder_hides_no_generator(capsys, tmp_path, monkeypatch):
    (tmp_path / "testbed").mkdir()
    monkeypatch.chdir(tmp_path)
    words = ["front", "--trace", "testbed", "--cluster", "1x32", "--prefer", "jct=avg"]
    assert main([*words, "--train", "1"]) == 2
    assert "train is 1; give 2 to 480, as the trace has 480 jobs" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--prefer", "jct=101"], "jct: the measure is 101.0; give avg or a percentile, 0 to 100"),
        (["--prefer", "speed=avg"], "no metric 'speed'; accepted: jct, pred_err, unfairness"),
        (["--prefer", "jct"], "--prefer jct: give METRIC=avg or METRIC=PERCENTILE"),
        (["--prefer", "jct=avg:much"], "--prefer jct=avg:much: give METRIC=avg"),
        ([*PREFER, "--prefer", "jct=avg:5"], "names avg_jct_s twice"),
        ([*PREFER, "--budget", "60"], "budget is 60; give at least the population, which is 70"),
        ([*PREFER, "--train", "1"], "train is 1; give 2 to 80, as the trace has 80 jobs"),
        ([*PREFER, "--train", "81"], "train is 81; give 2 to 80, as the trace has 80 jobs"),
        ([*PREFER, "--method", "tabu"], "no search 'tabu'"),
        ([*PREFER, "-j", "0"], "-j 0: give a whole number of 1 or more"),
        ([*PREFER, "--seed", "-1"], "--seed -1"),
        ([*PREFER, "--out", "nowhere/front.csv"], "no folder nowhere; make it first"),
        (["--prefer", "jct=avg:1", *SMALL], "no configuration found is within all limits"),
    ],
)
def test_bad_input_is_one_line(capsys, jobs, words, said):
    shown = front(capsys, jobs, *words, code=2)
    *progress, line = shown.err.splitlines()
    assert said in line and shown.out == ""
    assert all("evaluated" in one for one in progress)


RANGES = ("--search", "promote_knob=1:8", "--search", "thresholds=100:1e5:log:1-3")
OF_THEMIS = (
    *("--policy", "themis", "--prefer", "jct=avg", "--search", "lease=10:100"),
    *("--speedups", "pcs-speedups"),
)
OF_TIRESIAS = ("--policy", "tiresias-l", "--prefer", "jct=avg", "--prefer", "preemptions=avg")


def test_parameters_of_another_policy(capsys, jobs, tmp_path):
    out = tmp_path / "front.csv"
    shown = front(capsys, jobs, *OF_TIRESIAS, *RANGES, *SMALL, "--train", 60, "--out", out)
    rows = list(csv.DictReader(out.open()))
    assert len(rows) == len(shown.out.splitlines())
    assert {"avg_preemptions", "test_avg_jct_s", "promote_knob", "thresholds"} <= set(rows[0])
    assert "weights" not in rows[0]
    words = shown.out.splitlines()[0].split(" --set ")[1:]
    words = [word for one in words for word in ("--set", one.strip())]
    assert main(["simulate", *on(jobs), "--policy", "tiresias-l", *words]) == 0
    capsys.readouterr()
    told = json.loads(front(capsys, jobs, *OF_TIRESIAS, *RANGES, *SMALL, "--json").out)
    for row in told["front"]:
        policy = make(
            "tiresias-l", promote_knob=row["promote_knob"], thresholds=tuple(row["thresholds"])
        )
        summary = simulate(load(jobs, "repro"), "1x16", policy).summary()
        assert summary["avg_jct"] == pytest.approx(row["avg_jct_s"])


def test_other_parameters_are_set_and_rules_chosen(capsys, jobs):
    words = [*OF_TIRESIAS, "--search", "promote_knob=1:8", *SMALL, "--rules", "tiresias", "--json"]
    told = json.loads(front(capsys, jobs, *words, "--set", "thresholds=500").out)
    (row, *_) = told["front"]
    assert "thresholds" not in row
    policy = make("tiresias-l", "tiresias", promote_knob=row["promote_knob"], thresholds=(500,))
    summary = simulate(load(jobs, "repro"), "1x16", policy, rules="tiresias").summary()
    assert summary["avg_jct"] == pytest.approx(row["avg_jct_s"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (OF_TIRESIAS, "'tiresias-l': give the parameters to search and their ranges"),
        ([*OF_TIRESIAS, "--search", "promote_knob"], "--search promote_knob: expected K=LOW:HIGH"),
        ([*OF_TIRESIAS, *RANGES, *RANGES[:2]], "promote_knob has a range already"),
        ([*OF_TIRESIAS, "--search", "promote_knob=8"], "promote_knob: a range is '8'; give LOW"),
        ([*OF_TIRESIAS, "--search", "knob=1:8"], "has no parameter 'knob'"),
        ([*OF_TIRESIAS, *RANGES, "--set", "promote_knob=3"], "the search chooses promote_knob"),
        ([*OF_TIRESIAS, *RANGES, "--no-heuristics"], "without heuristics"),
        ([*OF_TIRESIAS, *RANGES, "--prefer", "unfairness=99"], "have no unfairness"),
        ([*OF_TIRESIAS, *RANGES, "--speedups", "x.csv"], "the GPUs it asks for or none; leave"),
        ([*OF_THEMIS, "--set", "form=shares"], "the GPUs it asks for or none; leave it out"),
        ([*OF_THEMIS, "--rules", "muri"], "the GPUs it asks for or none; leave it out"),
        ([*PREFER, "--policy", "las"], 'no policy "las"; policies of that family:'),
    ],
)
def test_bad_searches_of_another_policy_are_refused(capsys, jobs, words, said):
    shown = front(capsys, jobs, *words, code=2)
    assert said in shown.err.splitlines()[0] and shown.out == ""
