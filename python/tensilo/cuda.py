"""Datasets that stay compressed in the memory of a GPU.

``ResidentDataset`` needs PyTorch. ``tensilo.torch.Loader(..., device="cuda")`` is for datasets that are larger than
the memory of the GPU.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from . import _loader_options, _tensilo
from ._torch_device import TorchDevice
from ._torch_tensors import dtype_of

__all__ = ["Resident"]

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# Gathers whose reports are not waited for.
_MAX_IN_FLIGHT = 8


class ResidentDataset:
    """Samples that stay in the memory of a GPU as they are stored, and are decoded there when they are gathered.

    All are read, checked and sent when this is made. ``gather`` then needs neither the processor nor the link.
    Columns are numbers of a fixed shape, or of samples whose first extent varies and that ``pad`` names.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes.
        columns: the names of the columns; all by default.
        device: "cuda", or one such as "cuda:1".
        dtypes: columns of bf16 and f16 that become f32, such as ``{"mel": "f32"}``.
        pad: the values that fill up samples which are shorter than the longest one, by the names of columns.
        null_masks: whether a batch has, for each column that may have nulls, a tensor of bool ``NAME_is_null``.
        max_bytes: the memory of the GPU that samples may take, such as "40GiB"; by default nine tenths of what is
            free. If not all have room, those from the first on that have are resident, in pieces of about 64 MiB.
            Others are read when they are gathered, and the numbers of the samples are then copied to the host,
            which waits for the GPU.
        rank, world_size: of the samples, this GPU has its share: the numbers of ``samples``.
        progress: a function of phase, done and total.
        io: how files are read, see ``tensilo.open``.
    """

    def __init__(
        self,
        source: Any,
        columns: str | Sequence[str] | None = None,
        *,
        device: str | torch.device = "cuda",
        dtypes: Mapping[str, Any] | None = None,
        pad: Mapping[str, float | tuple[float, int]] | None = None,
        null_masks: bool = False,
        max_bytes: int | str | None = None,
        rank: int = 0,
        world_size: int = 1,
        progress: Callable[[str, int, int | None], object] | None = None,
        io: _loader_options.Io = "auto",
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} of {world_size}")
        dataset = _loader_options.opened(source, io)
        self._gpu = TorchDevice(device)
        self.device = self._gpu.device
        n = len(dataset)
        self.samples = range(n * rank // world_size, n * (rank + 1) // world_size)
        loader = _tensilo.Loader(
            dataset, 1, columns=columns, dtypes=dtypes, pad=pad, _gpu=self._gpu.gpu, _min_device_bytes=0
        )
        if max_bytes is None and not self._gpu.gpu.is_emulated:
            max_bytes = torch.cuda.mem_get_info(self.device)[0] // 10 * 9
        self._resident = _tensilo.ResidentDataset(loader, self.samples.start, self.samples.stop, max_bytes, progress)
        self._reader = loader.reader()
        described = enumerate(self._resident.columns())
        self._columns = [_Column(self, number, pad or {}, *column) for number, column in described]
        self._null_masks = null_masks
        self._pending: deque[tuple[_tensilo.PendingGathers, torch.Tensor]] = deque()

    def __len__(self) -> int:
        """Returns the number of samples of this rank."""
        return len(self.samples)

    @property
    def resident(self) -> int:
        """The number of samples, from the first on, that are in the memory of the GPU."""
        return len(self._resident)

    @property
    def nbytes(self) -> int:
        """The bytes of the GPU that samples take."""
        return self._resident.nbytes

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self._columns)
        return f"ResidentDataset({names}: {self.resident} of {len(self)} samples, {self.nbytes} bytes of {self.device})"

    def gather(self, indices: Any) -> dict[str, torch.Tensor]:
        """Returns samples, in this order and repeated ones each time, as a dict from names to tensors.

        Args:
            indices: the numbers of the samples, counted from 0: a tensor of integers, on the GPU or not, or
                anything that ``torch.as_tensor`` takes. On the GPU they are not looked at by the host, unless
                some samples are not resident.

        Returns when the work is enqueued on the current stream. An index on the GPU that no sample has is an
        ``IndexError`` of a later ``gather``, or of ``synchronize``.
        """
        indices = torch.as_tensor(indices)
        if indices.numel() == 0:
            indices = indices.long()
        if indices.dtype.is_floating_point or indices.dtype in (torch.bool, torch.complex64) or indices.dim() != 1:
            raise TypeError(f"indices are integers of one dimension, not {indices.dtype} of {indices.dim()}")
        if self.resident == len(self) and indices.device.type != "cpu":
            return self._gathered(indices.to(self.device, torch.int64).contiguous(), {})
        host = indices.cpu().long().contiguous()
        if host.numel() > 0:
            lowest, highest = int(host.min()), int(host.max())
            if lowest < 0 or highest >= len(self):
                raise IndexError(f"sample {lowest if lowest < 0 else highest} of {len(self)}, counted from 0")
        indices = host.to(self.device)
        absent = (host >= self.resident).nonzero()[:, 0]
        if absent.numel() == 0:
            return self._gathered(indices, {})
        # rows of another sample until those that are read take their places
        streamed = self._streamed(host[absent])
        tensors = self._gathered(indices.masked_fill(indices >= self.resident, 0), streamed)
        positions = absent.to(self.device)
        for column in self._columns:
            column.replace(tensors[column.name], positions, streamed[column.name])
        for name in tensors.keys() - {column.name for column in self._columns}:
            tensors[name][positions] = streamed[name]
        return tensors

    def synchronize(self) -> None:
        """Waits until all that was gathered is decoded, and raises what the GPU has found."""
        while self._pending:
            self._finish(*self._pending.popleft())

    def _finish(self, gathering, indices):
        """Waits for a gather, and raises what the processor finds if the GPU has refused a sample."""
        row = gathering.finish()
        if row is None:
            return
        sample = int(indices[row])
        if not 0 <= sample < self.resident:
            raise IndexError(f"sample {sample} of {len(self)}, counted from 0")
        self._streamed(torch.tensor([sample]))
        raise RuntimeError(f"internal error: the GPU refused sample {sample}, which is intact; please report it")

    def _streamed(self, samples):
        """Returns samples that are not resident."""
        samples = (samples + self.samples.start).tolist()
        item = self._reader._take_on_device(samples, self._gpu.allocate, self._gpu.stream)
        return self._gpu.tensors(*item, null_masks=True)

    def _gathered(self, indices, streamed):
        """Returns rows of resident samples, which are as long as those that were streamed."""
        gathering, tensors = _tensilo.PendingGathers(), {}
        for column in self._columns:
            tensors[column.name] = column.rows(indices, streamed.get(column.name), gathering)
            if self._null_masks and column.nullable:
                tensors[f"{column.name}_is_null"] = column.masks(indices)
        # the caller may write to the indices meanwhile
        self._pending.append((gathering, indices.clone()))
        while len(self._pending) > (0 if self._gpu.gpu.is_emulated else _MAX_IN_FLIGHT):
            self._finish(*self._pending.popleft())
        return tensors


class _Column:
    """A column of ``ResidentDataset``."""

    def __init__(self, owner, number, pad, name, dtype, shape, filler, nullable, nulls):
        self._gpu, self._resident, self._number = owner._gpu, owner._resident, number
        self.name, self.nullable, self._is_padded = name, nullable, name in pad
        self._dtype, self._shape = dtype_of(dtype), shape
        # rows are filled up by bits: of some types PyTorch has nothing but these
        self._bits, self._filler = _INTEGERS[len(filler)], int.from_bytes(filler, sys.byteorder, signed=True)
        self._nulls = torch.zeros(len(owner._resident), dtype=torch.bool)
        self._nulls[nulls] = True
        self._nulls = self._nulls.to(owner.device)

    def rows(self, indices, streamed, gathering):
        """Returns the samples with these numbers."""
        count, shape = len(indices), self._shape
        if streamed is not None and self._is_padded:
            shape = (max(shape[0] if shape else 0, streamed.shape[1]), *streamed.shape[2:])
        device = self._gpu.device
        if self._is_padded:
            rows = torch.full((count, *shape), self._filler, dtype=self._bits, device=device).view(self._dtype)
        else:
            rows = torch.empty((count, *shape), dtype=self._dtype, device=device)
        if count > 0 and len(self._resident) > 0:
            row_bytes = rows.nbytes // count
            arguments = (indices.data_ptr(), count, rows.data_ptr(), row_bytes, self._gpu.current_stream())
            self._resident.gather(self._number, *arguments, gathering)
        return rows

    def replace(self, rows, positions, streamed):
        """Puts samples into rows, which are at least as long."""
        if not self._is_padded:
            rows[positions] = streamed
            return
        rows[positions, : streamed.shape[1]] = streamed
        rows.view(self._bits)[positions, streamed.shape[1] :] = self._filler

    def masks(self, indices):
        """Returns which of the samples are null."""
        if len(self._nulls) == 0:
            return torch.zeros_like(indices, dtype=torch.bool)
        # PyTorch would end all work of the process on the GPU for a number that no sample has
        return self._nulls[indices.clamp(0, len(self._nulls) - 1)]
