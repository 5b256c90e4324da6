"""AFS-L against the rule written out GPU by GPU, and by hand."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
from hypothesis import given, settings
from hypothesis import strategies as st

from repro import simulate
from repro.perf import SpeedUp

SPEED = {"a": (1.0, 1.9, 2.6, 3.0, 3.1), "b": (1.0, 1.1, 2.2, 2.1, 2.3)}


def written_out(work, asked, model, gpus):
    """Return GPUs by comparing the job preferred so far with the next, for each GPU anew."""

    def speed(job, count):
        count = min(count, asked[job])
        return SPEED[model[job]][count - 1] if count else 0.0

    def inverse(job, count):
        return 1 / (work[job] / speed(job, count) + 1e-7) if count else 0.0

    held = [0] * len(work)
    for _ in range(gpus):
        if all(got >= want for got, want in zip(held, asked, strict=True)):
            break
        best = 0
        for job in range(1, len(work)):
            times = [work[j] / speed(j, held[j]) if held[j] else math.inf for j in (best, job)]
            low, high = (job, best) if times[1] < times[0] else (best, job)
            now = inverse(low, held[low])
            then = inverse(low, held[low] + 1)
            other = inverse(high, held[high])
            more = inverse(high, held[high] + 1)
            if now == 0:
                best = low if then > more else high
            else:
                best = low if (then - now) / now > (more - other) / more else high
        held[best] += 1
    return [min(got, want) for got, want in zip(held, asked, strict=True)]


@given(st.integers(0, 2**32), st.integers(1, 7), st.integers(1, 9))
@settings(max_examples=60, deadline=None)
def test_every_gpu_goes_where_the_rule_says(seed, count, gpus):
    rng = np.random.default_rng(seed)
    work = rng.integers(5, 60, count).astype(float)
    model = rng.choice(["a", "b"], count)
    asked = rng.integers(1, 6, count)
    fastest = np.array([SPEED[m][g - 1] for m, g in zip(model, asked, strict=True)])
    trace = pd.DataFrame(
        {
            "job_id": range(count),
            "submit_time": 0.0,
            "duration": work / fastest,
            "num_gpus": asked,
            "model": model,
            "service": work,
        }
    )
    spans = simulate(trace, f"1x{gpus}", "afs", perf=SpeedUp(SPEED)).intervals
    first = spans[spans["start"] == 0].set_index("job_id")["gpus"]
    found = first.reindex(range(count), fill_value=0.0).tolist()
    assert found == written_out(work.tolist(), asked.tolist(), model.tolist(), gpus)


def test_the_shortest_come_first_one_gpu_each():
    """Three jobs and two GPUs; of the two jobs of 20 s the later one is preferred."""
    trace = pd.DataFrame(
        {"job_id": range(3), "submit_time": 0.0, "duration": [20.0, 5.0, 20.0], "num_gpus": 1}
    )
    assert simulate(trace, "1x2", "afs").jobs["end_time"].tolist() == [25.0, 5.0, 20.0]
