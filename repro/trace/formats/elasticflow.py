"""The traces of ElasticFlow: ten clusters of Microsoft, one CSV per cluster."""

from repro.files.table import Document, Parsed, Table
from repro.trace.formats import FORMATS


@FORMATS.register("elasticflow")
def read(document: Document) -> Parsed:
    """Read a cluster's CSV of the ElasticFlow traces, times in seconds.

    Columns: job_id, submission_time, duration, num_gpu.

    The files have ten Microsoft clusters from March to May 2021. Submit times are seconds from the
    start of the record, which is the same for all clusters. They stay as they are: the first job of
    a cluster may arrive weeks after 0. ``duration`` is the run time without the queue. The files
    have no users, models and states; every row is a job that ran.

    Gu et al., "ElasticFlow: An Elastic Serverless Training Platform for Distributed Deep Learning",
    ASPLOS 2023; repository ``microsoft/elasticflow-traces``.
    """
    required = ("job_id", "submission_time", "duration", "num_gpu")
    table = Table(document, required, ids="job_id")
    return table.parsed("job_id", "duration", submit_time="submission_time", num_gpus="num_gpu")
