"""``repro place``: plans, scores and run times of one decision; bad input is one line."""

from __future__ import annotations

import json

import pytest

from repro.cli import main

CLUSTER = """
nodes:
  - {count: 4, gpus: 4}
  - {count: 2, gpus: 4, switch: 1, used: 2}
  - {count: 2, gpus: 8, domain: 1, used: 1}
"""
HEAD = "job_id,num_ps,num_workers,tasks,model,batch_size,num_batches"
JOBS = [
    "a,1,2,0 0 0,vgg16,12,250",
    "b,1,4,1 1 4 4 0,resnet50,12,250",
    "c,2,3,6 6 6 7 7,inception3,12,250",
    "d,0,1,,vgg16,12,250",
]


@pytest.fixture
def place(tmp_path, capsys):
    def _place(*options, jobs=JOBS, head=HEAD, cluster=CLUSTER, policy="given"):
        (tmp_path / "c.yaml").write_text(cluster)
        (tmp_path / "jobs.csv").write_text("\n".join([head, *jobs]) + "\n")
        files = ["--cluster", str(tmp_path / "c.yaml"), "--jobs", str(tmp_path / "jobs.csv")]
        code = main(["place", *files, "--policy", policy, *options])
        return code, *capsys.readouterr()

    return _place


def report(place, *options, **named):
    code, out, err = place(*options, "--json", **named)
    assert code == 0
    assert all(line.startswith("repro: not used: ") for line in err.splitlines())
    return json.loads(out)


def test_given_plans_are_scored_by_hand(place):
    told = report(place, "--times", "t4")
    a, b, c, d = told["jobs"]
    # a: three of the four GPUs of node 0
    assert (a["tasks"], a["cost"], a["score"]) == ([0, 0, 0], 0, -0.375)
    # b: one worker on its node, two under the other switch of six nodes, one in the rack of four
    assert b["cost"] == 0 + 6 + 6 + 4
    assert b["score"] == 0.5 * 16 - 0.5 * (2 / 4 + (2 + 2) / 4 + (1 + 3) / 4)
    assert c["score"] == 0.5 * 8 - 0.5 * ((3 + 1) / 8 + (2 + 1) / 8)
    assert d == {"job_id": "d", "tasks": None, "cost": None, "score": None, "run_s": None}
    # compute alone, and 1106 MB through the memory of the node
    assert a["run_s"] == pytest.approx(20 + 260 * (12 / 80 + 3 * 0 + 2 * 1106 / 2500))
    assert told["num_nodes"] == 5
    assert told["objective"] == pytest.approx(told["sum_score"] + 5)


def test_published_times(place):
    jobs = ["a,1,2,0 0 0,vgg16,1,1", "b,1,2,1 2 3,vgg16,1,1"]
    told = report(place, "--times", "measured", jobs=jobs)
    assert [job["run_s"] for job in told["jobs"]] == [510, 810]


def test_policies_place_in_file_order_and_the_head_blocks(place):
    told = report(
        place,
        jobs=["a,1,2,,,,", "b,1,2,,,,", "c,0,1,,,,"],
        policy="liquid",
        cluster="nodes: [{count: 2, gpus: 2}]",
    )
    assert [job["tasks"] for job in told["jobs"]] == [[0, 0, 1], None, None]
    spread = report(
        place, "--set", "drop=always", "--set", "lambda=0.2", policy="liquid", jobs=["a,1,2,,,,"]
    )
    assert len(set(spread["jobs"][0]["tasks"])) == 3


def test_batch_is_no_worse_than_best_fit_and_the_same_again(place):
    told = [report(place, "--seed", "4", policy=p) for p in ("liquid-batch",) * 2 + ("liquid",)]
    assert told[0] == told[1]
    assert told[0]["objective"] <= told[2]["objective"]


def test_seeds_matter_to_those_that_draw(place):
    plans = {str(report(place, "--seed", str(n), policy="liquid-random")) for n in range(4)}
    assert len(plans) > 1


def test_lines_for_people(place):
    code, out, _ = place("--times", "t4")
    assert code == 0
    assert "a  nodes 0 0 0  cost 0  score -0.375" in out
    assert "d  waits" in out


@pytest.mark.parametrize(
    ("jobs", "options", "line"),
    [
        (["a,0,0,,,,"], (), "jobs.csv:2:num_workers: no container"),
        (["a,-1,2,,,,"], (), "jobs.csv:2:num_ps: negative"),
        (["a,1,1.5,,,,"], (), "not a whole number"),
        (["a,1,2,0 0,,,"], (), "jobs.csv:2:tasks: 2 nodes for 3 containers"),
        (["a,1,2,0 0 8,,,"], (), "jobs.csv:2:tasks: no node '8'; nodes are 0 to 7"),
        (["a,1,2,0 x 1,,,"], (), "no node 'x'"),
        (["a,1,2,4 4 4,,,"], (), "node 4 is full; all 2 GPUs are taken"),
        (
            ["a,1,2,0 0 0,alexnet,1,1"],
            ("--times", "k80"),
            "jobs.csv:2:model: no iteration model for 'alexnet'",
        ),
        (["a,1,2,0 0 0,alexnet,1,1"], ("--times", "measured"), "no measured time for 'alexnet'"),
        (["a,1,2,0 0 0,vgg16,,1"], ("--times", "t4"), "jobs.csv:2:batch_size: missing value"),
        (["a,1,2,0 0 0,,,"], ("--times", "v100"), "accepted: measured, k80, t4"),
        (JOBS, ("--set", "lambda=2"), "lambda is 2; give a number from 0 to 1"),
        (JOBS, ("--set", "lambda=x"), "lambda is 'x'"),
        (JOBS, ("--set", "mu=1"), "policy 'given' has no parameter 'mu'"),
        (JOBS, ("--seed", "-1"), "--seed -1"),
        (JOBS, ("--set", "times=t4"), "--set times=t4: use --times instead"),
    ],
)
def test_bad_input(place, jobs, options, line):
    code, out, err = place(*options, jobs=jobs)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


BARE = "job_id,num_ps,num_workers"


@pytest.mark.parametrize(
    ("named", "ignored", "lines"),
    [
        ({"head": BARE, "jobs": ["a,1,2"]}, {}, []),
        # a column without a value tells nothing
        ({"jobs": ["a,1,2,,,,"]}, {}, []),
        (
            {"head": f"{BARE},Model", "jobs": ["a,1,2,resnet50"]},
            {"file_columns": ["Model"]},
            ["not used: columns of the file Model (did you mean 'model'?)"],
        ),
        (
            {"head": f"{BARE},model,batch size", "jobs": ["a,1,2,vgg16,32"]},
            {"file_columns": ["model", "batch size"]},
            [
                "not used: columns of the file model (only --times reads it), batch size (did you "
                "mean 'batch_size'?)"
            ],
        ),
        (
            {"head": f"{BARE},tasks,queue", "jobs": ["a,1,1,0 0,main"]},
            {"file_columns": ["tasks", "queue"]},
            ["not used: columns of the file tasks (only --policy 'given' reads it), queue"],
        ),
        (
            {
                "head": f"{BARE},gpu_type",
                "jobs": ["a,1,1,t4"],
                "cluster": "nodes: [{count: 2, gpus: 4, type: v100}, {gpus: 8, type: t4}]",
            },
            {"file_columns": ["gpu_type"], "options": ["GPU types of the cluster"]},
            [
                "not used: columns of the file gpu_type (a container goes on a GPU of any type)",
                "not used: GPU types of the cluster v100, t4 (all GPUs are alike)",
            ],
        ),
    ],
)
def test_what_is_not_used_is_told(place, named, ignored, lines):
    code, out, err = place("--json", policy="liquid", **named)
    assert code == 0
    assert json.loads(out)["ignored"] == ignored
    assert err.splitlines() == [f"repro: {line}" for line in lines]
    _, text, told = place(policy="liquid", **named)
    assert told == err and "ignored" not in text


def test_a_seed_without_effect_is_told(place):
    code, out, err = place("--seed", "3", "--json", policy="liquid", head=BARE, jobs=["a,1,2"])
    assert code == 0
    assert err == "repro: not used: --seed 3 (policy liquid uses no random numbers)\n"
    assert json.loads(out)["ignored"] == {"options": ["--seed"]}
    assert "uses no random numbers" in place("--seed", "3")[2]
    named = {"head": BARE, "jobs": ["a,1,2"]}
    assert place("--seed", "3", policy="liquid-random", **named)[2] == ""
    assert place(policy="liquid", **named)[2] == ""


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("liquid", ["share=1.3", "load=0.1", "ahead_s=15", "heartbeat_s=5"]),
        ("liquid-batch", ["every_s=5"]),
    ],
)
def test_settings_without_effect_on_one_decision_are_named(place, policy, settings):
    named = {"jobs": ["a,1,2", "b,1,4", "c,2,3", "d,0,1"], "head": BARE, "policy": policy}
    options = [word for setting in settings for word in ("--set", setting)]
    code, out, err = place(*options, "--json", **named)
    names = [setting.split("=")[0] for setting in settings]
    assert code == 0 and json.loads(out)["ignored"] == {"options": names}
    line = f"not used: --set {', '.join(names)} (one decision has no running jobs)"
    assert err == f"repro: {line}\n"
    assert json.loads(place("--json", **named)[1])["jobs"] == json.loads(out)["jobs"]


def test_columns_that_are_read_are_not_told(place):
    _, _, err = place("--times", "t4")
    assert err == ""
    code, _, err = place("--times", "measured", jobs=["a,1,2,0 0 0,vgg16,1,1"])
    assert code == 0
    assert (
        "columns of the file batch_size (--times measured has one batch size only), num_batches"
        in err
    )
    memory = {"head": f"{BARE},gpu_mem_mb,bandwidth_mb_s", "jobs": ["a,1,2,100,10"]}
    assert place(policy="liquid", **memory)[2] == ""


KUBERNETES = "jobs.csv:1: looks like a Kubernetes object of kind Job (YAML)"


@pytest.mark.parametrize(
    ("head", "jobs", "line"),
    [
        (BARE, ["a,1,2", "b,1,2", "a,0,1"], "jobs.csv:4:job_id: appears twice (a)"),
        (BARE, ["7,1,2", "7,1,2"], "jobs.csv:3:job_id: appears twice (7)"),
        (BARE, [",1,2"], "jobs.csv:2:job_id: missing value"),
        (
            "apiVersion: batch/v1",
            ["kind: Job"],
            f"{KUBERNETES}, not a table; ",
        ),
        (
            "# a job",
            ["---", "kind: Job"],
            f"{KUBERNETES}, not a table; ",
        ),
        ("- name: a", ["  gpus: 2"], "jobs.csv:1: looks like YAML, not a table; "),
        ('[{"job_id": "a",', ['"num_ps": 1}]'], "jobs.csv:1: JSON, not a table"),
        ("{", ['"jobs": []}'], "jobs.csv:1: JSON, not a table"),
    ],
)
def test_a_file_that_is_no_table_of_jobs(place, head, jobs, line):
    code, out, err = place(head=head, jobs=jobs, policy="liquid")
    assert (code, out) == (2, "")
    assert line in err and err.count("\n") == 1
    if "not a table" in line:
        assert "write a table with the columns job_id, num_ps, num_workers" in err


def test_a_misspelt_column_that_is_needed_is_near(place):
    code, _, err = place("--times", "k80", head=f"{BARE},Model", jobs=["a,1,2,vgg16"])
    assert code == 2 and "jobs.csv:1: --times needs the column model" in err
    assert "found 'Model'" in err


@pytest.mark.parametrize(
    ("named", "line"),
    [
        ({"jobs": ["a,1,20,,,,"]}, "has 21 containers of one GPU"),
        (
            {"jobs": ["a,1,4,,,,"], "cluster": "nodes: [{count: 3, gpus: 1}]"},
            "no domain takes more than 3 of them",
        ),
        ({"cluster": "nodes: [{gpus: 2, used: 3}]"}, "c.yaml:1: nodes[0].used is 3, but gpus is 2"),
        ({"cluster": "nodes: [{gpus: 2, rack: 3}]"}, "unknown key 'rack'"),
        ({"policy": "srtf"}, "policy 'srtf' does not place containers; accepted: hived"),
        ({"policy": "liqiud"}, "did you mean 'liquid'"),
        ({"head": "job_id,ps,workers", "jobs": ["a,1,2"]}, "num_ps"),
    ],
)
def test_what_cannot_be_placed(place, named, line):
    code, out, err = place(**{"policy": "liquid"} | named)
    assert (code, out) == (2, "")
    assert line in err
    assert err.count("\n") == 1


def test_a_plan_across_domains_costs_infinity(place):
    told = report(place, jobs=["a,1,1,0 6,,,"])
    assert float(told["jobs"][0]["cost"]) == float("inf")


def test_lambda_is_a_parameter_of_runs_and_listed(capsys):
    jobs = ["--trace", "liquid-batch-jobs", "--cluster", "5x2", "--policy", "liquid"]
    assert main(["simulate", *jobs, "--set", "lambda=1", "--set", "times=t4", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["avg_jct"] == pytest.approx(854, abs=0.5)
    assert main(["simulate", *jobs, "--set", "lambda=3"]) == 2
    assert "lambda is 3; give a number from 0 to 1" in capsys.readouterr().err
    assert main(["policies", "--json"]) == 0
    rows = {row["name"]: row["parameters"] for row in json.loads(capsys.readouterr().out)}
    assert rows["liquid"]["lambda"] == "0.5"


TRACE = "job_id,submit_time,duration,num_gpus,num_ps,model,batch_size,iterations,gpu_mem_mb"
TRACE_JOBS = ["b,5,10,5,1,resnet50,12,260,", "a,0,10,3,1,vgg16,12,260,4000"]


def test_a_trace_is_placed_in_order_of_arrival_like_a_table(place):
    options = {"policy": "liquid"}
    told = report(place, "--times", "t4", head=TRACE, jobs=TRACE_JOBS, **options)
    table = ["a,1,2,,vgg16,12,250", "b,1,4,,resnet50,12,250"]
    assert told["jobs"] == report(place, "--times", "t4", jobs=table, **options)["jobs"]
    assert told["ignored"] == {"file_columns": ["duration"]}


def test_a_trace_needs_no_number_of_servers(place):
    head = "job_id,submit_time,duration,num_gpus"
    told = report(place, head=head, jobs=["a,0,1,3", "b,0,1,1"], policy="liquid")
    table = report(place, head=BARE, jobs=["a,1,2", "b,0,1"], policy="liquid")
    assert told["jobs"] == table["jobs"]


def test_formats_and_generators_of_traces(place, capsys, tmp_path):
    head = "job_id,num_gpu,submit_time,duration"
    told = report(place, "--format", "tiresias", head=head, jobs=["0,4,0,60"], policy="liquid")
    assert len(told["jobs"][0]["tasks"]) == 4
    words = ["place", "--cluster", "20x4", "--policy", "liquid", "--json"]
    assert main([*words, "--jobs", "liquid-batch-jobs", "--times", "t4", "--seed", "2"]) == 0
    out, err = capsys.readouterr()
    assert all(job["run_s"] > 0 for job in json.loads(out)["jobs"])
    assert "--seed" not in err


def test_columns_and_unit_of_a_trace(place, capsys):
    head = "job_id,arrival,runtime,gpus"
    jobs = ["b,0.2,0.1,1", "a,0.1,0.1,3"]
    pairs = "submit_time=arrival,duration=runtime,num_gpus=gpus"
    words = ("--map", pairs, "--unit", "h")
    told = report(place, *words, head=head, jobs=jobs, policy="liquid")
    assert [(job["job_id"], len(job["tasks"])) for job in told["jobs"]] == [("a", 3), ("b", 1)]
    # a table of gangs has no times
    code, _, err = place("--unit", "h", policy="liquid")
    assert code == 2 and "jobs.csv:1:submit_time,duration,num_gpus: missing column" in err
    words = ["place", "--cluster", "20x4", "--policy", "liquid", "--jobs", "liquid-batch-jobs"]
    for option in (["--unit", "h"], ["--format", "repro"]):
        assert main([*words, *option]) == 2
        assert "'liquid-batch-jobs' is a generator, not a file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("head", "jobs", "options", "line"),
    [
        (TRACE, ["a,0,10,2,3,vgg16,12,260,"], (), "jobs.csv:num_ps: job 'a' has 3 parameter"),
        ("job_id,num_gpus", ["a,2"], (), "submit_time"),
        (
            "job_id,num_gpu,submit_time,submission_time,duration",
            ["0,4,0,0,60"],
            (),
            "add --format elasticflow or add --format tiresias",
        ),
        ("job_id,submit_time,duration,num_gpus", ["a,0,1,99"], (), "has 99 containers"),
        (
            "job_id,submit_time,duration,num_gpus",
            ["a,0,1,2"],
            ("--times", "t4"),
            "--times needs the column model, batch_size, iterations",
        ),
    ],
)
def test_a_trace_that_cannot_be_placed(place, head, jobs, options, line):
    code, out, err = place(*options, head=head, jobs=jobs, policy="liquid")
    assert (code, out) == (2, "")
    assert line in err and err.count("\n") == 1


@pytest.mark.parametrize(
    ("job", "line"),
    [
        (
            "a,1,1,0 0,99999,100",
            "jobs.csv:2:tasks: node 0 has GPUs of 11439 MB; a container takes 99999 MB",
        ),
        (
            "a,1,1,0 1,1,9999",
            "jobs.csv:2:tasks: node 0 has 1250 MB/s of bandwidth left; a container takes 9999 MB/s",
        ),
        (
            "a,1,1,0 0,1,700",
            "jobs.csv:2:tasks: node 0 has 550 MB/s of bandwidth left; a container takes 700 MB/s",
        ),
    ],
)
def test_a_given_plan_must_fit_memory_and_bandwidth(place, job, line):
    head = "job_id,num_ps,num_workers,tasks,gpu_mem_mb,bandwidth_mb_s"
    cluster = "nodes: [{count: 2, gpus: 4, gpu_mem_mb: 11439, bandwidth_mb_s: 1250}]"
    code, out, err = place(head=head, jobs=[job], cluster=cluster)
    assert (code, out) == (2, "") and line in err and err.count("\n") == 1
    fitting = place(head=head, jobs=["a,1,1,0 0,11439,625"], cluster=cluster)
    assert fitting[0] == 0


def test_plans_are_columns_of_tables_only(place):
    code, _, err = place(head=TRACE, jobs=TRACE_JOBS)
    assert code == 2 and "a trace has no column tasks; for --policy 'given' give a table" in err
