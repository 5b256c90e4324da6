"""Threads that read batches ahead share the inputs of a job."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from repro.measure.job_types import JOB_TYPES

BATCHES = 8
BATCH_SIZE = 4


class SlowNumber(int):
    """Number whose sums take so long that another thread goes on in between."""

    def __add__(self, other):
        time.sleep(0.01)
        return SlowNumber(int(self) + other)


def test_batches_of_threads_have_different_images_and_all_bytes_count(without_pytorch, tmp_path):
    module = without_pytorch("inputs")
    folder = tmp_path / "cnn_mnist-28"
    folder.mkdir()
    (folder / "complete").touch()
    for number in range(BATCHES * BATCH_SIZE):
        (folder / f"{number}.jpg").write_bytes(bytes([number]))
    inputs = module.Inputs(JOB_TYPES["cnn_mnist"], BATCH_SIZE, 28, tmp_path)
    inputs._next = SlowNumber()
    inputs.bytes_read = SlowNumber()
    with ThreadPoolExecutor(BATCHES) as threads:
        batches = list(threads.map(lambda _: inputs.read(), range(BATCHES)))
    images = [image[0] for batch in batches for image in batch]
    assert sorted(images) == list(range(BATCHES * BATCH_SIZE))
    assert inputs.bytes_read == len(images)
