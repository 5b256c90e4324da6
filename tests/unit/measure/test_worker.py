"""The process of a job: what the measurement hears when it has died."""

import pytest

from repro.measure.configuration import Configuration
from repro.measure.job_types import JOB_TYPES
from repro.measure.worker import CONTEXT, Worker, WorkerError


class Killed:
    """Process that the system has ended for lack of memory."""

    exitcode = -9

    def join(self, seconds):
        pass


@pytest.mark.parametrize("request_it", [Worker.ask, Worker.send])
def test_a_worker_that_died_between_requests_is_a_failure_of_its_job(request_it, tmp_path):
    worker = Worker(Configuration(JOB_TYPES["a2c"], 2, 84, "fp32", "adam", tmp_path, "cpu"))
    worker._connection, child_end = CONTEXT.Pipe()
    worker._process = Killed()
    child_end.close()
    with pytest.raises(WorkerError, match=r"a2c: its process ended \(exit code -9\)"):
        request_it(worker, "facts")
