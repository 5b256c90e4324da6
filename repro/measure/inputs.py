"""Synthetic inputs of the job types: files that are read, and the CPU work that makes a batch."""

from __future__ import annotations

import io
import threading
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import Tensor

from repro.measure.job_types import JobType
from repro.measure.other_networks import FRAMES, ITEMS, USERS, VOCABULARY

#: JPEG files of a folder; batches read them in turn.
_FILES = 64
#: Smallest side of the stored colour images (pixels). Decoding scales them to the input size.
_STORED_SIDE = 256
_CLASSES = {"cnn_mnist": 10}
_TOKENS = 1_000_000
_PAIRS = 1_000_000
#: Users of the file of items, and items of each.
_STORED_USERS = 2000
_ITEMS_OF_USER = 100
#: Height and width of the frames that an environment makes.
_SCREEN = (210, 160)

#: Bytes that were read, and inputs and targets of a batch.
Raw = list[bytes]
Batch = tuple[Tensor, Tensor]


class Inputs:
    """Batches of a job type in two steps: `read` is storage, `decode` is work of the CPU.

    Parameters
    ----------
    job : JobType
        Job type.
    batch_size : int
        Samples of a batch.
    input_size : int
        Side of the images, or tokens of a sequence.
    folder : Path
        Folder for the files; those of an earlier object are used again.
    seed : int
        Seed of the synthetic data.
    """

    def __init__(
        self, job: JobType, batch_size: int, input_size: int, folder: Path, seed: int = 0
    ) -> None:
        self._job = job
        self._batch_size = batch_size
        self._input_size = input_size
        self._rng = np.random.default_rng([seed, zlib.crc32(job.name.encode())])
        # threads that read ahead share the counts
        self._lock = threading.Lock()
        self._next = 0
        #: bytes that `read` has read
        self.bytes_read = 0
        write: Callable[[Path], None] | None = {
            "image": self._write_images,
            "token": self._write_tokens,
            "pairs": self._write_pairs,
            "items": self._write_items,
            "env": None,
        }[job.kind]
        self._folder = folder / f"{job.name}-{max(self._side, 1)}"
        if write is not None and not (self._folder / "complete").exists():
            self._folder.mkdir(parents=True, exist_ok=True)
            write(self._folder)
            (self._folder / "complete").touch()
        self._frames = np.zeros((batch_size, FRAMES, input_size, input_size), np.uint8)

    @property
    def _side(self) -> int:
        """Side of the stored images (pixels); 0 for other kinds."""
        if self._job.kind != "image":
            return 0
        return 28 if self._job.name == "cnn_mnist" else max(_STORED_SIDE, self._input_size)

    def batch(self) -> Batch:
        """Read and decode a batch."""
        return self.decode(self.read())

    def read(self) -> Raw:
        """Read the bytes of a batch from the disk; an environment reads none."""
        kind = self._job.kind
        if kind == "image":
            with self._lock:
                first = self._next
                self._next += self._batch_size
            numbers = (number % _FILES for number in range(first, first + self._batch_size))
            raw = [(self._folder / f"{number}.jpg").read_bytes() for number in numbers]
        elif kind == "token":
            raw = [self._slice(_TOKENS, 2, self._batch_size * (self._input_size + 1))]
        elif kind == "pairs":
            raw = [self._slice(_PAIRS * 3, 4, self._batch_size * 3)]
        elif kind == "items":
            raw = [
                self._slice(_STORED_USERS * _ITEMS_OF_USER, 4, self._batch_size * _ITEMS_OF_USER)
            ]
        else:
            raw = []
        with self._lock:
            self.bytes_read += sum(map(len, raw))
        return raw

    def decode(self, raw: Raw) -> Batch:
        """Inputs and targets of a batch from its bytes."""
        decode = {
            "image": self._decode_images,
            "token": self._decode_tokens,
            "pairs": self._decode_pairs,
            "items": self._decode_items,
            "env": self._simulate,
        }[self._job.kind]
        return decode(raw)

    def _slice(self, num_stored: int, width: int, count: int) -> bytes:
        """Bytes of ``count`` values of ``width`` bytes at a random place of the file.

        The file has ``num_stored`` values. If it is smaller than a batch, its bytes are repeated.
        """
        count = min(count, num_stored)
        start = int(self._rng.integers(0, num_stored - count + 1))
        with (self._folder / "data").open("rb") as file:
            file.seek(start * width)
            data = file.read(count * width)
        repeats = -(-self._values_per_batch(count) // count)
        return data * repeats if repeats > 1 else data

    def _values_per_batch(self, count: int) -> int:
        """Values of a batch; more than ``count`` if the file is smaller than a batch."""
        per_sample = {"token": self._input_size + 1, "pairs": 3, "items": _ITEMS_OF_USER}
        return self._batch_size * per_sample.get(self._job.kind, count)

    def _write_images(self, folder: Path) -> None:
        mode = "L" if self._job.name == "cnn_mnist" else "RGB"
        side = self._side
        for number in range(_FILES):
            # smooth colours with some noise have the size of a photograph's JPEG file
            shape = (8, 8) if mode == "L" else (8, 8, 3)
            coarse = Image.fromarray(self._rng.integers(0, 256, shape, dtype=np.uint8))
            pixels = np.asarray(coarse.resize((side, side), Image.Resampling.BICUBIC), np.int16)
            noisy = pixels + self._rng.integers(-12, 13, pixels.shape)
            image = Image.fromarray(noisy.clip(0, 255).astype(np.uint8))
            image.save(folder / f"{number}.jpg", quality=90)

    def _write_tokens(self, folder: Path) -> None:
        size = min(VOCABULARY[self._job.name], 2**16)
        tokens = self._rng.integers(0, size, _TOKENS, dtype=np.uint16)
        (folder / "data").write_bytes(tokens.tobytes())

    def _write_pairs(self, folder: Path) -> None:
        users = self._rng.integers(0, USERS, _PAIRS)
        items = self._rng.integers(0, ITEMS, _PAIRS)
        labels = self._rng.integers(0, 2, _PAIRS)
        rows = np.stack([users, items, labels], 1).astype(np.int32)
        (folder / "data").write_bytes(rows.tobytes())

    def _write_items(self, folder: Path) -> None:
        shape = _STORED_USERS, _ITEMS_OF_USER
        items = self._rng.integers(0, self._job.input_size, shape, dtype=np.int32)
        (folder / "data").write_bytes(items.tobytes())

    def _decode_images(self, raw: Raw) -> Batch:
        size = self._input_size
        arrays = []
        for data in raw:
            image = Image.open(io.BytesIO(data))
            if image.size != (size, size):
                image = image.resize((size, size), Image.Resampling.BILINEAR)
            arrays.append(np.asarray(image))
        pixels = torch.from_numpy(np.stack(arrays))
        pixels = pixels[:, None] if pixels.dim() == 3 else pixels.permute(0, 3, 1, 2)
        targets = self._rng.integers(0, _CLASSES.get(self._job.name, 1000), len(raw))
        return pixels.float().div_(127.5).sub_(1.0), torch.from_numpy(targets)

    def _decode_tokens(self, raw: Raw) -> Batch:
        length = self._input_size + 1
        tokens = np.frombuffer(raw[0], np.uint16)[: self._batch_size * length].astype(np.int64)
        rows = torch.from_numpy(tokens).view(self._batch_size, length)
        if self._job.name == "bert":
            # every position is a target; 15 % of the inputs are masked
            masked = torch.from_numpy(self._rng.random(rows[:, 1:].shape) < 0.15)
            return rows[:, 1:].masked_fill(masked, 103), rows[:, 1:].contiguous()
        return rows[:, :-1].contiguous(), rows[:, 1:].contiguous()

    def _decode_pairs(self, raw: Raw) -> Batch:
        rows = np.frombuffer(raw[0], np.int32)[: self._batch_size * 3].reshape(-1, 3)
        values = torch.from_numpy(rows.astype(np.int64))
        # a slice may begin inside a record, so each column is brought into its range
        pairs = values[:, :2].clone()
        pairs[:, 0] %= USERS
        pairs[:, 1] %= ITEMS
        return pairs, (values[:, 2] % 2).float()

    def _decode_items(self, raw: Raw) -> Batch:
        items = np.frombuffer(raw[0], np.int32)[: self._batch_size * _ITEMS_OF_USER]
        rows = torch.from_numpy(items.astype(np.int64)).view(self._batch_size, _ITEMS_OF_USER)
        dense = torch.zeros(self._batch_size, self._job.input_size).scatter_(1, rows, 1.0)
        return dense, dense

    def _simulate(self, raw: Raw) -> Batch:
        """A step of every environment: a noisy screen, scaled down to a grey frame."""
        size = self._input_size
        screens = self._rng.integers(0, 256, (self._batch_size, *_SCREEN), dtype=np.uint8)
        rows = np.arange(size) * _SCREEN[0] // size
        columns = np.arange(size) * _SCREEN[1] // size
        self._frames[:, :-1] = self._frames[:, 1:]
        self._frames[:, -1] = screens[:, rows][:, :, columns]
        returns = self._rng.standard_normal(self._batch_size, dtype=np.float32)
        return torch.from_numpy(self._frames).float().div_(255.0), torch.from_numpy(returns)
