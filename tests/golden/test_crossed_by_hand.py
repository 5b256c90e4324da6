"""Crossed runs worked out by hand: orders, PCS and Muri away from their own papers' jobs.

V100 does 2 steps/s of model m and K80 does 1, and durations refer to the V100, so that a job on a
K80 takes twice its duration.
"""

import pandas as pd
import pytest

from repro import make, simulate
from repro.perf import ThroughputTable
from repro.trace import dress

TABLE = ThroughputTable({("m", gpus): {"v100": 2.0, "k80": 1.0} for gpus in (1, 2, 8)}, "v100")


def trace(*jobs):
    """Jobs of model m, as (submission, duration, GPUs)."""
    submit, duration, gpus = zip(*jobs, strict=True)
    frame = pd.DataFrame(
        {"job_id": range(len(jobs)), "submit_time": submit, "duration": duration, "num_gpus": gpus}
    ).astype({"submit_time": float, "duration": float})
    return frame.assign(model="m")


def run(jobs, cluster, policy):
    """Result of a run on GPUs of several types."""
    return simulate(jobs, cluster, policy, perf=TABLE)


def ends(jobs, cluster, policy):
    """End of each job (s)."""
    return run(jobs, cluster, policy).jobs["end_time"].tolist()


def types(result):
    """GPU types of each job, in order of time."""
    spans = result.intervals.sort_values("start", kind="stable")
    return spans.groupby("job_id")["gpu_type"].agg(lambda names: "".join(n[0] for n in names))


def test_the_shorter_job_takes_the_faster_gpu_and_nobody_moves_later():
    # B (4 s) takes the V100. A runs at half speed to the end, also once the V100 is idle.
    assert ends(trace((0, 10, 1), (0, 4, 1)), "1xv100,1xk80", "srtf") == [20.0, 4.0]


def test_a_preempted_job_takes_the_type_that_is_left():
    # At 2 s C takes the V100 of A, and A takes the K80 of B: 8 s are left of A, 11 s of B. At 3 s
    # the V100 goes to B, to 14 s. A has 7.5 s left, for 15 s on the K80.
    result = run(trace((0, 10, 1), (0, 12, 1), (2, 1, 1)), "1xv100,1xk80", "srtf")
    assert result.jobs["end_time"].tolist() == [18.0, 14.0, 3.0]
    assert types(result).tolist() == ["vk", "kv", "v"]
    assert result.jobs["preemptions"].tolist() == [0, 1, 0]


def test_fifo_waits_for_a_type_with_room_for_the_gang():
    # A holds both V100, B both K80 at half speed. C waits for the first type that is free.
    jobs = trace((0, 4, 2), (0, 4, 2), (1, 2, 1))
    assert ends(jobs, "1x2:v100,1x2:k80", "yarn-cs") == [4.0, 8.0, 6.0]


def test_pcs_has_weights_by_class_and_type():
    # Jobs 0 (small) and 1 (large) join the 2 V100: 2 / 1.5 against 1 for job 1. Jobs 2 and 3 join
    # the 8 K80: 1 / 2 against 2 / 5.5 for job 3. Weights 3 and 1 give 1.5 and 0.5 V100. Weights 1
    # and 3 give 2 and 6 K80.
    jobs = trace((0, 30, 2), (0, 120, 1), (0, 10, 8), (0, 40, 8))
    policy = make(
        "pcs", thresholds=(100.0,), weights=(1.0, 1.0), type_weights=("v100:3:1", "k80:1:3")
    )
    result = run(jobs, "1x2:v100,1x8:k80", policy)
    first = result.intervals[result.intervals["start"] == 0].set_index("job_id").sort_index()
    assert first["gpu_type"].tolist() == ["v100", "v100", "k80", "k80"]
    assert first["gpus"].tolist() == [1.5, 0.5, 2.0, 6.0]
    # job 0: 60 GPU-s at 1.5 GPUs, 40 s; then 100 of 120 GPU-s are left of job 1, for its 1 GPU
    # job 2: 80 GPU-s on 2 GPUs at half speed, 80 s; by then job 3 has had 240 of 320 GPU-s, and
    # goes on with 8 GPUs
    assert result.jobs["end_time"].tolist() == pytest.approx([40.0, 140.0, 80.0, 100.0])


@pytest.mark.parametrize("policy", ["muri-s", "muri-l"])
def test_two_dressed_jobs_of_muri_by_hand(policy):
    """Seed 3 draws GPT-2 for job 0 and A2C for job 1, each on the one GPU of the cluster.

    Table 3 on one GPU, ms per iteration: GPT-2 takes 426 alone, with stages (data, GPU, network)
    0.6, 410, 0. A2C takes 517 alone, with stages 514, 14, 0. Job 0 lasts 426 s, hence 1,000
    iterations, and job 1 lasts 1,034 s, hence 2,000.

    The period of the group (Eq 3), with the two jobs half a period apart: GPT-2 is in its GPU stage
    (410) while A2C is in its data stage (514), and in its data stage (0.6) while A2C is in its GPU
    stage (14). T = max(514, 410) + max(14, 0.6) = 528 ms. No order is shorter, as the
    stages of A2C alone sum to 528.

    Both jobs complete an iteration per period. Job 0 ends after 1,000 x 0.528 = 528 s. Job 1 then
    has 1,000 iterations left, which take 1,000 x 0.517 = 517 s alone: it ends at 1,045 s.
    """
    jobs = trace((0, 426, 1), (0, 1034, 1)).drop(columns="model")
    dressed = dress(jobs, "muri", 3, weights={"gpt2": 1, "a2c": 1})
    assert dressed["model"].tolist() == ["gpt2", "a2c"]
    assert dressed["iterations"].tolist() == [1000, 2000]
    result = simulate(dressed, "1x1", policy)
    assert result.jobs["end_time"].tolist() == pytest.approx([528.0, 1045.0])
