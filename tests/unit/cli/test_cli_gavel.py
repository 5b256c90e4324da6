"""`repro simulate --format gavel`: hand-made traces and throughput tables, and what is refused."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from repro.cli import app

A3C = "A3C"
LM = "LM (batch size 5)"
SPEEDS = f"""\
job_type,scale_factor,gpu_type,steps_per_second,job_type_b,steps_per_second_b
{A3C},1,v100,8,,
{A3C},1,k80,2,,
{LM},1,v100,100,,
{LM},1,k80,25,,
{A3C},1,v100,6,{LM},50
{A3C},1,v100,4,{A3C},4
{LM},1,v100,60,{LM},60
"""


def line(job_type=A3C, steps=4800, gang=1, weight=1, slo=-1.0, arrival=0):
    """Return one job of ten fields."""
    return (
        f"{job_type}\tpython3 main.py %s\tdir\t--steps\t1\t{steps}\t{gang}\t{weight}\t{slo:.6f}"
        f"\t{arrival}"
    )


def short(job_type=A3C, steps=4800, gang=1, arrival=0):
    """Return one job of seven fields."""
    return f"{job_type}\tpython3 main.py\t--steps\t0\t{steps}\t{arrival}\t{gang}"


JOBS = [line(), line(LM, 60_000, arrival=100)]


@pytest.fixture
def simulate(tmp_path, capsys):
    def _simulate(
        *words, jobs=JOBS, speeds=SPEEDS, cluster="1xv100,1xk80", policy="gavel-las", code=0
    ):
        path = tmp_path / "jobs.trace"
        table = tmp_path / "speeds"
        out = tmp_path / "out.csv"
        path.write_text("\n".join(jobs) + "\n")
        table = table.with_suffix(".csv" if isinstance(speeds, str) else ".json")
        table.write_text(speeds if isinstance(speeds, str) else json.dumps(speeds))
        given = ["simulate", "--trace", path, "--format", "gavel", "--throughputs", table]
        given += ["--cluster", cluster, "--policy", policy, "--out", out, "--json", *words]
        assert app.main([str(word) for word in given]) == code
        shown = capsys.readouterr()
        if not code:
            return json.loads(shown.out), pd.read_csv(out).set_index("job_id")
        assert shown.out == "" and not out.exists()
        (said,) = shown.err.strip().splitlines()
        return said.removeprefix("repro: ").replace(f"{tmp_path}/", "")

    return _simulate


# what comes out ----------------------------------------------------------------------------------


def test_one_job_alone_takes_its_steps_on_the_fastest_type(simulate):
    summary, jobs = simulate(jobs=[line(steps=4800)])
    assert jobs["jct"].tolist() == [600.0]
    assert (summary["trace"], summary["n_finished"], summary["makespan"]) == ("jobs.trace", 1, 600)
    assert summary["policy"] == "gavel-las" and summary["cluster"] == "1xv100,1xk80"


def test_rules_of_the_paper_wait_for_the_next_round(simulate):
    _, jobs = simulate(cluster="2xv100,2xk80")
    assert jobs["start_time"].tolist() == [0, 360]
    assert jobs["jct"].tolist() == [600, 260 + 600]


def test_rules_of_the_simulator_end_a_round_with_its_last_step(simulate):
    speeds = SPEEDS.replace(f"{A3C},1,v100,8,", f"{A3C},1,v100,7.001,")
    _, jobs = simulate("--rules", "gavel", speeds=speeds, cluster="2xv100,2xk80")
    # int(7.001 * 360) = 2520 steps end a little before 360 s
    assert jobs.loc[1, "start_time"] == pytest.approx(2520 / 7.001)
    assert jobs.loc[0, "jct"] == pytest.approx(4800 / 7.001)


def test_jobs_that_arrive_between_recomputations_are_dropped_under_rules_gavel(simulate):
    # X of the first submission counts as none; X of 730 s may be replaced 1,920 s later
    late = [
        line(steps=48_000, arrival=10),
        line(LM, 60_000, arrival=400),
        line(LM, 60_000, arrival=800),
    ]
    found = {
        rules: simulate("--rules", rules, jobs=late, cluster="3xv100")[1]["start_time"].tolist()
        for rules in ("paper", "gavel")
    }
    assert found == {"paper": [10, 730, 1090], "gavel": [10, 730, 2890]}
    sooner = ("--set", "min_realloc_interval_s=0")
    _, jobs = simulate("--rules", "gavel", *sooner, jobs=late, cluster="3xv100")
    assert jobs["start_time"].tolist() == [10, 730, 1090]


def test_round_settings(simulate):
    words = ("--rules", "gavel", "--set", "round_s=720", "--set", "min_realloc_interval_s=0")
    _, jobs = simulate(*words, cluster="2xv100", jobs=[line(steps=48_000), line(arrival=100)])
    assert jobs["start_time"].tolist() == [0, 720]
    _, jobs = simulate("--set", "ideal=fluid", cluster="1xv100", jobs=[line(), line()])
    assert jobs["jct"].tolist() == pytest.approx([1200, 1200])


def test_priority_weights_are_read(simulate):
    jobs = [line(steps=80_000), line(steps=80_000, weight=5)]
    _, found = simulate("--set", "ideal=fluid", jobs=jobs, cluster="1xv100")
    assert found["jct"].tolist() == pytest.approx([20_000, 12_000])


def test_pairs_of_the_table_are_used(simulate):
    twice = [line(steps=4800), line(LM, 60_000)]
    _, together = simulate(jobs=twice, cluster="1xv100", policy="gavel-las-ss")
    _, apart = simulate(jobs=twice, cluster="1xv100")
    # alone at half time 1,200 s; beside each other 800 s and 1,200 s less what is left alone
    assert together["jct"].mean() < 0.95 * apart["jct"].mean()


def test_seconds_follow_from_the_reference_type(simulate):
    """On a cluster without types a job takes its duration, which is meant on the reference."""
    _, jobs = simulate("--reference-gpu", "k80", cluster="1x2", policy="srtf")
    assert jobs["jct"].tolist() == [2400, 2400]
    _, jobs = simulate(cluster="1x2", policy="srtf")
    assert jobs["jct"].tolist() == [600, 600]


def test_a_trace_in_seconds_takes_the_speeds_of_the_table(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    table = tmp_path / "speeds.csv"
    out = tmp_path / "out.csv"
    path.write_text(f"job_id,submit_time,duration,num_gpus,model\n0,0,300,1,{A3C}\n")
    table.write_text(SPEEDS)
    words = ["simulate", "--trace", path, "--format", "repro", "--cluster", "2xk80", "--out", out]
    words += ["--policy", "gavel-las"]
    assert app.main([str(word) for word in words]) == 0
    assert pd.read_csv(out)["jct"].tolist() == [300]
    assert app.main([str(word) for word in [*words, "--throughputs", table]]) == 0
    assert pd.read_csv(out)["jct"].tolist() == [1200]
    capsys.readouterr()


def test_generators_take_a_table_too(tmp_path, capsys):
    words = ["simulate", "--trace", "gavel-static", "--cluster", "2xv100", "--policy", "gavel-las"]
    words += ["--throughputs", str(tmp_path / "none.csv")]
    assert app.main(words) == 2
    assert "none.csv: no such file" in capsys.readouterr().err


# throughput tables -------------------------------------------------------------------------------


def as_json(**changes):
    a3c = f"('{A3C}', 1)"
    lm = f"('{LM}', 1)"
    table = {
        "v100": {
            a3c: {"null": 8.0, a3c: [4.0, 4.0], lm: [6.0, 50.0]},
            lm: {"null": 100.0, a3c: [50.0, 6.0], lm: [60.0, 60.0]},
        }
    }
    if "pair" in changes:
        del table["v100"][a3c][a3c]
    if "alone" in changes:
        table["v100"][lm]["null"] = changes["alone"]
    return table


@pytest.mark.parametrize(
    ("speeds", "said"),
    [
        (as_json(pair=None), f"speeds.json: v100: ('{A3C}', 1): ('{A3C}', 1): missing entry: this"),
        (as_json(alone=-3), f"speeds.json: v100: ('{LM}', 1): \"null\": negative (-3); a through"),
        (as_json(alone="x"), f"speeds.json: v100: ('{LM}', 1): \"null\": not a number ('x'); a"),
        (
            SPEEDS.replace(f"{LM},1,v100,60,{LM},60\n", ""),
            f"speeds.csv: v100: ('{LM}', 1): ('{LM}', 1): missing entry: this pair, while others",
        ),
        (SPEEDS.replace("k80,25", "k80,-25"), "speeds.csv:5:steps_per_second: negative (-25); a"),
        (SPEEDS.replace("k80,25", "k80,?"), "speeds.csv:5:steps_per_second: not a number (?)"),
        (SPEEDS.replace(f"{LM},60", f"{LM},-6"), "speeds.csv:8:steps_per_second_b: negative (-6)"),
        (SPEEDS.replace("v100", "a100"), "speeds.csv: no throughputs for GPU type 'v100'; referen"),
        (
            "a,b\n1,2\n",
            "speeds.csv:1:job_type,scale_factor,gpu_type,steps_per_second: missing column (found",
        ),
        ({}, "speeds.json: not a Gavel throughput table (no GPU types); expected JSON"),
    ],
)
def test_bad_tables_name_row_and_column(simulate, speeds, said):
    line = simulate(speeds=speeds, cluster="1xv100", code=2)
    assert line.startswith(said), line


def test_another_reference_answers_a_table_without_v100(simulate):
    speeds = SPEEDS.replace("v100", "a100")
    _, jobs = simulate("--reference-gpu", "a100", speeds=speeds, cluster="1xa100", jobs=[line()])
    assert jobs["jct"].tolist() == [600]


# traces, clusters and settings -------------------------------------------------------------------


@pytest.mark.parametrize("policy", ["gavel-las", "las-agnostic", "allox", "gavel-makespan"])
@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_an_unknown_gpu_type_is_named(simulate, policy, rules):
    said = simulate("--rules", rules, cluster="1xv100,1xt4", policy=policy, code=2)
    assert said.startswith(
        f"job 0: the throughput table has no GPU type 't4' for '{A3C}'; it has k80"
    )


@pytest.mark.parametrize(
    ("job", "said"),
    [
        (
            line("GPT"),
            "jobs.trace:2:job_type: no throughput on v100 for this job type on 1 GPUs (G",
        ),
        (
            line(steps=0),
            "jobs.trace:2:steps: too small (0); a job has 1 to 9,007,199,254,740,992 steps",
        ),
        (line(steps="x"), "jobs.trace:2:steps: not a number (x)"),
        (line(gang=0), "jobs.trace:2:scale_factor: "),
        (line(gang=9), "jobs.trace:2:scale_factor: more GPUs than the cluster has (9)"),
        (line(arrival=-1), "jobs.trace:2:arrival: negative (-1)"),
        (
            line().rsplit("\t", 1)[0],
            "jobs.trace:2: 9 fields where 10 are expected; one field per column",
        ),
    ],
)
def test_bad_jobs_name_row_and_column(simulate, job, said):
    found = simulate(jobs=[line(), job], code=2)
    assert found.startswith(said), found


def test_seven_fields(simulate):
    _, jobs = simulate(jobs=[short(), short(LM, 60_000, arrival=360)], cluster="2xv100")
    assert jobs["jct"].tolist() == [600, 600]


@pytest.mark.parametrize("rules", ["paper", "gavel"])
def test_a_gang_without_throughput_is_named_on_typed_clusters(simulate, rules):
    """Its duration is known from one GPU, but not its speed on each type."""
    jobs = [short(), short(gang=2)]
    said = simulate("--rules", rules, jobs=jobs, cluster="2xv100,2xk80", code=2)
    missing = f"job 1: the throughput table has no model '{A3C}' on 2 GPUs; it has gangs of 1 GPU:"
    assert said.startswith(missing)
    assert "or take a cluster without GPU types" in said
    _, found = simulate(jobs=jobs, cluster="1x4", policy="srtf")
    assert found["jct"].tolist() == [600, 600]


@pytest.mark.parametrize(
    ("cluster", "said"),
    [
        ("0xv100,1xk80", "cluster spec '0xv100,1xk80': '0xv100' asks for zero; every number"),
        ("1xv100,-1xk80", "cluster spec '1xv100,-1xk80': "),
    ],
)
def test_zero_workers_of_a_type(simulate, cluster, said):
    assert simulate(cluster=cluster, code=2).startswith(said)


def test_infeasible_slo(simulate):
    jobs = [line(slo=10.0), line(LM, 60_000, slo=1.2, arrival=100)]
    words = ("--set", "strict=true")
    said = simulate(*words, jobs=jobs, policy="gavel-min-cost-slo", code=2)
    assert said.startswith("gavel-min-cost-slo: infeasible SLO constraint") and "1" in said
    summary, _ = simulate(jobs=jobs, policy="gavel-min-cost-slo")
    assert summary["n_finished"] == 2


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("rounds=3", "policy 'gavel-las' and its rounds have no parameter 'rounds'"),
        ("round_s=0", "round setting round_s is 0; give a finite number of seconds above 0"),
        ("round_s=x", "round setting round_s is 'x'; give a finite number of seconds above 0"),
        ("min_realloc_interval_s=-1", "round setting min_realloc_interval_s is -1; give a"),
        ("ideal=perfect", "round setting ideal is 'perfect'; give fluid or artifact"),
        ("ideal=artifact", "round setting ideal is 'artifact', which counts whole training steps"),
        (
            "whole_steps=true",
            "round setting whole_steps counts training steps, but rules 'paper' do",
        ),
        ("preemption_overhead_s=360", "round setting preemption_overhead_s is 360 s, a round 360"),
        ("throughputs=speeds.csv", "--set throughputs=speeds.csv: use --throughputs instead"),
        ("lp_backend=mosek", "policy 'gavel-las': lp_backend is 'mosek'; give "),
    ],
)
def test_settings_that_are_refused(simulate, setting, said):
    found = simulate("--set", setting, code=2)
    assert found.startswith(said), found


def test_rules_that_count_steps_need_them(tmp_path, capsys):
    path = tmp_path / "jobs.csv"
    path.write_text("job_id,submit_time,duration,num_gpus\n0,0,300,1\n")
    words = ["simulate", "--trace", str(path), "--format", "repro", "--cluster", "1x2"]
    assert app.main([*words, "--policy", "gavel-las", "--rules", "gavel"]) == 2
    (said,) = capsys.readouterr().err.strip().splitlines()
    assert "jobs.csv: no column 'iterations'" in said and said.endswith("or use --rules paper")


def test_policies_without_rounds_take_no_round_settings(simulate):
    said = simulate("--set", "round_s=60", policy="srtf", cluster="1x2", code=2)
    assert said.startswith("policy 'srtf' has no parameter 'round_s' (accepted")


GANGS = SPEEDS + f"{A3C},2,v100,16,,\n{A3C},2,k80,4,,\n{A3C},2,v100_unconsolidated,4,,\n"


def test_a_gang_over_more_nodes_than_it_needs_is_slower_if_asked_for(simulate):
    # one job of two on the first node ends, and the gang finds a GPU on each node
    jobs = [line(steps=2880), *[line(steps=80_000)] * 2, line(steps=4800, gang=2, arrival=400)]
    given = {"jobs": jobs, "speeds": GANGS, "cluster": "2x2:v100"}
    _, anywhere = simulate(**given)
    assert anywhere.loc[3, ["start_time", "end_time"]].tolist() == [720, 720 + 4800 / 16]
    _, sensitive = simulate("--placement-sensitive", **given)
    assert sensitive.loc[3, ["start_time", "end_time"]].tolist() == [720, 720 + 4800 / 4]
    # beside larger nodes of another type it needs as many nodes of its own as before
    mixed = given | {"jobs": jobs[-1:], "cluster": "2x1:v100,2x2:k80"}
    _, narrow = simulate("--placement-sensitive", **mixed)
    assert narrow["jct"].tolist() == [4800 / 16]
    # alone in the cluster it has a node for itself
    _, alone = simulate("--placement-sensitive", **(given | {"jobs": jobs[-1:]}))
    assert alone["jct"].tolist() == [4800 / 16]


def test_policies_that_choose_nodes_keep_their_choice_where_nodes_matter(simulate):
    jobs = [*[line(steps=2880)] * 2, line(steps=4800, gang=2)]
    given = {"jobs": jobs, "speeds": GANGS, "cluster": "2x2:v100"}
    # each of the single jobs has a node for itself, so the gang spans both nodes
    _, even = simulate("--placement-sensitive", **given, policy="liquid-even")
    assert even["jct"].tolist() == [360, 360, 4800 / 4]
    _, packed = simulate("--placement-sensitive", **given, policy="liquid-pack")
    assert packed["jct"].tolist() == [360, 360, 4800 / 16]


@pytest.mark.parametrize(
    ("words", "cluster", "said"),
    [
        ([], "2x2", "2x2 names no GPU types; give one such as 9x4:v100"),
        (["--rules", "gavel"], "2x2:v100", "use --rules paper"),
        ([], "4xv100", "no gang has more nodes than it needs; leave it out"),
        ([], "1x4:v100", "1x4:v100 has one node of each GPU type, so no gang has more nodes than"),
        ([], "1x4:v100,1x4:k80", "has one node of each GPU type"),
    ],
)
def test_where_placement_cannot_matter(simulate, words, cluster, said):
    found = simulate("--placement-sensitive", *words, cluster=cluster, code=2)
    assert found.startswith("--placement-sensitive: ") and said in found
