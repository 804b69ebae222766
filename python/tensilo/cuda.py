"""Datasets that stay compressed in GPU memory.

``ResidentDataset`` sends the encoded samples to the GPU once. After that, gathering a batch decodes on the GPU and
transfers nothing. This module needs PyTorch. For datasets that are much larger than GPU memory, use
``tensilo.torch.Loader(..., device="cuda")``.
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

__all__ = ["ResidentDataset"]

_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
# the maximum number of gathers in flight: before another one, the host waits for the oldest
_MAX_IN_FLIGHT = 8


class ResidentDataset:
    """Keeps encoded samples in GPU memory, and decodes them there when they are gathered.

    The constructor reads and verifies the samples, and sends them to the GPU. After that, ``gather`` uses neither the
    CPU nor the link to the GPU. Columns must have numeric elements and a fixed shape. A column whose first extent
    varies is also supported if ``pad`` names it.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``.
        columns: the columns to load. Default: all columns.
        device: "cuda", or a device such as "cuda:1". Default: "cuda".
        casts: bf16 and f16 columns to convert to f32, such as ``{"mel": "f32"}``. Default: no conversion.
        pad: how to pad columns whose samples differ in length: a dict from names to padding values or to
            ``(value, multiple)``; see ``tensilo.torch.Dataset``. Default: no padding.
        null_masks: whether a batch has a bool tensor ``NAME_is_null`` for each nullable column. Default: False.
        max_bytes: the maximum GPU memory for samples: a number of bytes, or a string such as "40GiB". If not all
            samples fit, only the first ones are resident, in segments of about 64 MiB. The remaining samples are read
            from the files when they are gathered. To find them, ``gather`` copies the indices to the host, and the host
            waits for the GPU. Default: 90 % of the free GPU memory.
        rank: the rank of this process. The GPU holds only the samples of this rank: the range ``indices``. Default: 0.
        world_size: the number of ranks. Default: 1.
        progress: a function that is called with ``(phase, done, total)``. Default: None.
        io: how files are read; see ``tensilo.open``. Default: "auto".
    """

    def __init__(
        self,
        source: Any,
        columns: str | Sequence[str] | None = None,
        *,
        device: str | torch.device = "cuda",
        casts: Mapping[str, Any] | None = None,
        pad: Mapping[str, float | tuple[float, int]] | None = None,
        null_masks: bool = False,
        max_bytes: int | str | None = None,
        rank: int = 0,
        world_size: int = 1,
        progress: Callable[[str, int, int | None], object] | None = None,
        io: _loader_options.Io = "auto",
    ) -> None:
        if not 0 <= rank < world_size:
            raise ValueError(f"rank {rank} is out of range for world_size {world_size}")
        dataset = _loader_options.opened(source, io)
        self._gpu = TorchDevice(device)
        self.device = self._gpu.device
        n = len(dataset)
        self.indices = range(n * rank // world_size, n * (rank + 1) // world_size)
        loader = _tensilo.Loader(
            dataset, 1, columns=columns, casts=casts, pad=pad, _gpu=self._gpu.gpu, _min_device_bytes=0
        )
        if max_bytes is None and not self._gpu.gpu.is_emulated:
            max_bytes = torch.cuda.mem_get_info(self.device)[0] // 10 * 9
        self._resident = _tensilo.ResidentDataset(loader, self.indices.start, self.indices.stop, max_bytes, progress)
        self._reader = loader.reader()
        described = enumerate(self._resident.columns())
        self._columns = [_Column(self, number, pad or {}, *column) for number, column in described]
        self._null_masks = null_masks
        self._pending: deque[tuple[_tensilo.PendingGathers, torch.Tensor]] = deque()

    def __len__(self) -> int:
        """Returns the number of samples of this rank."""
        return len(self.indices)

    @property
    def resident(self) -> int:
        """The number of samples in GPU memory. They are the first samples of this rank."""
        return len(self._resident)

    @property
    def nbytes(self) -> int:
        """How much GPU memory the samples take, in bytes."""
        return self._resident.nbytes

    def __repr__(self) -> str:
        names = ", ".join(column.name for column in self._columns)
        return f"ResidentDataset({names}: {self.resident} of {len(self)} samples, {self.nbytes} bytes of {self.device})"

    def gather(self, indices: Any) -> dict[str, torch.Tensor]:
        """Returns samples in the order of ``indices`` as a dict from names to tensors.

        It returns as soon as the work is enqueued on the current stream. If the indices are on the GPU and one of them
        is out of range, a later ``gather`` or ``synchronize`` raises an ``IndexError``.

        Args:
            indices: the sample indices, counted from 0 and possibly repeated: an integer tensor on the CPU or the
                GPU, or anything that ``torch.as_tensor`` takes. If all samples are resident, the host does not read
                indices that are on the GPU.
        """
        indices = torch.as_tensor(indices)
        if indices.numel() == 0:
            indices = indices.long()
        if indices.dtype.is_floating_point or indices.dtype in (torch.bool, torch.complex64) or indices.dim() != 1:
            raise TypeError(f"expected 1-D integer indices, found {indices.dtype} with {indices.dim()} dimensions")
        if self.resident == len(self) and indices.device.type != "cpu":
            return self._gathered(indices.to(self.device, torch.int64).contiguous(), {})
        host = indices.cpu().long().contiguous()
        if host.numel() > 0:
            lowest, highest = int(host.min()), int(host.max())
            if lowest < 0 or highest >= len(self):
                raise IndexError(f"sample {lowest if lowest < 0 else highest} is out of range for {len(self)} samples")
        indices = host.to(self.device)
        absent = (host >= self.resident).nonzero()[:, 0]
        if absent.numel() == 0:
            return self._gathered(indices, {})
        # rows of samples that are not resident hold sample 0 until the streamed samples replace them
        streamed = self._streamed(host[absent])
        tensors = self._gathered(indices.masked_fill(indices >= self.resident, 0), streamed)
        positions = absent.to(self.device)
        for column in self._columns:
            column.replace(tensors[column.name], positions, streamed[column.name])
        for name in tensors.keys() - {column.name for column in self._columns}:
            tensors[name][positions] = streamed[name]
        return tensors

    def synchronize(self) -> None:
        """Waits until all gathered samples are decoded, and raises the errors that the GPU found."""
        while self._pending:
            self._finish(*self._pending.popleft())

    def _finish(self, gathering, indices):
        """Waits for a gather. If the GPU refused a sample, decodes it again to raise the precise error."""
        row = gathering.finish()
        if row is None:
            return
        sample = int(indices[row])
        if not 0 <= sample < self.resident:
            raise IndexError(f"sample {sample} is out of range for {len(self)} samples")
        self._streamed(torch.tensor([sample]))
        raise RuntimeError(f"internal error: the GPU refused sample {sample}, which is intact; please report this")

    def _streamed(self, samples):
        """Reads samples that are not resident."""
        samples = (samples + self.indices.start).tolist()
        item = self._reader._take_on_device(samples, self._gpu.allocate, self._gpu.stream)
        return self._gpu.tensors(*item, null_masks=True)

    def _gathered(self, indices, streamed):
        """Returns the rows of resident samples. Padded rows are at least as long as the streamed rows."""
        gathering, tensors = _tensilo.PendingGathers(), {}
        for column in self._columns:
            tensors[column.name] = column.rows(indices, streamed.get(column.name), gathering)
            if self._null_masks and column.nullable:
                tensors[f"{column.name}_is_null"] = column.masks(indices)
        # the caller can overwrite the indices before `_finish` reads them
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
        # padding writes bits, because PyTorch cannot fill tensors of some dtypes
        self._bits, self._filler = _INTEGERS[len(filler)], int.from_bytes(filler, sys.byteorder, signed=True)
        self._nulls = torch.zeros(len(owner._resident), dtype=torch.bool)
        self._nulls[nulls] = True
        self._nulls = self._nulls.to(owner.device)

    def rows(self, indices, streamed, gathering):
        """Returns the samples at these indices."""
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
        """Copies streamed samples to rows, which are at least as long as these samples."""
        if not self._is_padded:
            rows[positions] = streamed
            return
        rows[positions, : streamed.shape[1]] = streamed
        rows.view(self._bits)[positions, streamed.shape[1] :] = self._filler

    def masks(self, indices):
        """Returns which of the samples are null."""
        if len(self._nulls) == 0:
            return torch.zeros_like(indices, dtype=torch.bool)
        # an index out of range would cause a CUDA assertion, after which the process cannot use the GPU
        return self._nulls[indices.clamp(0, len(self._nulls) - 1)]
