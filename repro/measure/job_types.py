"""The 16 job types: network, batch size, precision and optimizer, and their variations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from repro.base.errors import refuse_unknown

#: Inputs of a job type: JPEG files, tokens, user-item pairs, items of users, or an environment.
Kind = Literal["image", "token", "pairs", "items", "env"]
PRECISIONS = ("fp32", "tf32", "bf16")
OPTIMIZERS = ("sgd", "momentum", "adam")
#: Threads that read and decode batches in a random configuration.
LOADER_WORKERS = (0, 1, 2, 4, 8, 12)
#: Factors of the batch size in a random configuration.
_BATCH_FACTORS = (0.25, 0.5, 1.0, 2.0)


@dataclass(frozen=True)
class JobType:
    """A network with its training configuration.

    Parameters
    ----------
    name : str
        Name in all tables.
    kind : Kind
        Inputs.
    batch_size : int
        Samples of an iteration.
    input_size : int
        Side of an image (pixels), tokens of a sequence, or number of items.
    precision : str
        One of `PRECISIONS`.
    optimizer : str
        One of `OPTIMIZERS`.
    sizes : tuple of int
        Input sizes of random configurations.

    Examples
    --------
    >>> JOB_TYPES["bert"].batch_sizes()
    (4, 8, 16, 32)
    """

    name: str
    kind: Kind
    batch_size: int
    input_size: int
    precision: str
    optimizer: str
    sizes: tuple[int, ...]

    def batch_sizes(self) -> tuple[int, ...]:
        """Batch sizes of random configurations, in rising order."""
        return tuple(sorted({max(1, int(self.batch_size * f)) for f in _BATCH_FACTORS}))


#: Job types by name.
JOB_TYPES: Mapping[str, JobType] = {
    job.name: job
    for job in (
        JobType("cnn_mnist", "image", 128, 28, "tf32", "momentum", (28,)),
        JobType("resnet18", "image", 128, 32, "tf32", "momentum", (32, 64, 128, 224)),
        JobType("resnet50", "image", 64, 224, "tf32", "momentum", (64, 128, 224)),
        JobType("vgg16", "image", 32, 224, "tf32", "momentum", (128, 224)),
        JobType("vgg19", "image", 16, 224, "tf32", "momentum", (128, 224)),
        JobType("inception_v3", "image", 32, 299, "tf32", "momentum", (224, 299)),
        JobType("shufflenet", "image", 64, 224, "tf32", "momentum", (64, 128, 224)),
        JobType("vit_small", "image", 64, 224, "bf16", "adam", (224,)),
        JobType("bert", "token", 16, 128, "bf16", "adam", (64, 128, 256)),
        JobType("gpt2", "token", 8, 256, "bf16", "adam", (128, 256, 512)),
        JobType("lstm", "token", 80, 35, "tf32", "momentum", (35, 70)),
        JobType("transformer", "token", 64, 32, "tf32", "adam", (32, 64)),
        JobType("neumf", "pairs", 4096, 1, "fp32", "adam", (1,)),
        JobType("recoder", "items", 1024, 20108, "tf32", "adam", (20108,)),
        JobType("a2c", "env", 80, 84, "fp32", "adam", (84,)),
        JobType("dqn", "env", 32, 84, "fp32", "adam", (84,)),
    )
}
#: Job types that groups of Muri are made of: the eight models of Muri's paper.
MURI_TYPES = ("vgg16", "vgg19", "resnet18", "shufflenet", "bert", "gpt2", "a2c", "dqn")


def job_types(names: Iterable[str]) -> list[JobType]:
    """Job types by their names; ParamError for an unknown name.

    >>> [job.kind for job in job_types(["a2c", "bert"])]
    ['env', 'token']
    """
    names = list(names)
    refuse_unknown("no job type", names, JOB_TYPES)
    return [JOB_TYPES[name] for name in dict.fromkeys(names)]
