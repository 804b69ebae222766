"""Batches for JAX."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Unpack

import jax
import jax.dlpack

from . import _gpu, _loader_options, _tensilo

__all__ = ["Loader"]


def _sample(values: Any, start: int, shape: tuple[int, ...]) -> Any:
    """Returns the sample that begins at an element."""
    return jax.lax.dynamic_slice(values, (start,), (math.prod(shape),)).reshape(shape)


class Loader:
    """Batches of arrays of JAX, of which each process has its share.

    A batch is a dict from names to arrays. Samples of different shapes that ``pad`` does not name are a list
    of arrays; texts and lists are lists.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes.
        batch_size: the samples of a batch of this process.
        device: "cuda", which is the first GPU, or one such as "cuda:1": this GPU decodes, and arrays are in its
            memory. Without a sharding.
        sharding: a ``jax.sharding.Sharding``: arrays are then global ones, of the batches of all processes.
        transform: a function of a batch, as a dict of arrays, whose result is delivered in its place. It runs
            on the thread that iterates.
        io: how files are read, see ``tensilo.open``.
        rank, world_size: those of JAX's processes by default.

    Others are those of ``tensilo.Loader``: columns, dtypes, pad, order, seed, last_batch, decode_threads, and more.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        *,
        device: str | None = None,
        sharding: Any = None,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        io: _loader_options.Io = "auto",
        rank: int | None = None,
        world_size: int | None = None,
        **options: Unpack[_loader_options.LoaderOptions],
    ) -> None:
        _loader_options.check(options)
        dataset = _loader_options.opened(source, io)
        rank = jax.process_index() if rank is None else rank
        world_size = jax.process_count() if world_size is None else world_size
        if device is not None and sharding is not None:
            raise ValueError("arrays of a device have no sharding: pass one of both")
        self._gpu = None if device is None else _gpu.opened(_gpu.number_of(device) or 0)
        self._loader = _tensilo.Loader(dataset, batch_size, rank=rank, world_size=world_size, _gpu=self._gpu, **options)
        self._sharding = sharding
        self._transform = transform

    def __getattr__(self, name: str) -> Any:
        # epoch, batches_left, set_epoch, state_dict, load_state_dict, stats, samples
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        # not generators, which threads cannot share
        if self._gpu is not None:
            return map(self._on_device, self._loader._iter_on_device(self._gpu.allocate, self._gpu.stream))
        return map(self._arrays, self._loader)

    def _on_device(self, item: tuple[_tensilo.Batch, _tensilo.DeviceMemory]) -> Any:
        batch, memory = item
        arrays = {name: self._device_array(column, memory) for name, column in batch.items()}
        return self._transform(arrays) if self._transform else arrays

    def _device_array(self, column: _tensilo.BatchColumn, memory: _tensilo.DeviceMemory) -> Any:
        if column._device_range is None:
            return column.tolist()
        start, _ = column._device_range
        if column.is_tensor:
            return jax.dlpack.from_dlpack(memory.array(start, column.dtype, column.shape))
        slots = column._sample_slots()
        _, end = column._device_range
        # arrays begin at multiples of 16 bytes, which samples of different lengths do not
        values = jax.dlpack.from_dlpack(memory.array(start, column.dtype, ((end - start) // column._element_bytes,)))
        return [slot and _sample(values, slot[0] // column._element_bytes, slot[1]) for slot in slots]

    def _arrays(self, batch: _tensilo.Batch) -> Any:
        arrays = {name: self._array(column) for name, column in batch.items()}
        return self._transform(arrays) if self._transform else arrays

    def _array(self, column: _tensilo.BatchColumn) -> Any:
        if column.dtype in ("utf8", "bytes") or column.levels:
            return column.tolist()
        if not column.is_tensor:
            return [
                sample if sample is None else sample.jax() for sample in map(column.__getitem__, range(len(column)))
            ]
        if self._sharding is None:
            return column.jax()
        return jax.make_array_from_process_local_data(self._sharding, column.numpy())
