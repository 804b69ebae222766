"""A loader for JAX.

It wraps ``tensilo.Loader`` and converts its batches to JAX arrays. The arrays are on the host, are global arrays with
a sharding, or are decoded on a GPU.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Unpack

import jax
import jax.dlpack

from . import _gpu, _loader_options, _tensilo

__all__ = ["Loader"]


def _sample(values: Any, start: int, shape: tuple[int, ...]) -> Any:
    """Returns the sample that starts at element ``start``."""
    return jax.lax.dynamic_slice(values, (start,), (math.prod(shape),)).reshape(shape)


class Loader:
    """Delivers batches of JAX arrays; each process gets its share.

    A batch is a dict from names to arrays. A column whose samples differ in shape becomes a list of arrays, unless
    ``pad`` names the column. Text and lists become Python lists.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``.
        batch_size: the number of samples in a batch of this process.
        device: the GPU that decodes and holds the arrays: "cuda" for the first GPU, or a device such as "cuda:1".
            It cannot be combined with ``sharding``. Default: None, which decodes on the CPU.
        sharding: a ``jax.sharding.Sharding``. If given, each array is a global array over the batches of all
            processes. Default: None.
        transform: a function that takes a batch as a dict of arrays. Its result is delivered instead of the
            batch. It runs on the iterating thread. Default: None.
        io: how files are read; see ``tensilo.open``. Default: "auto".
        rank: the rank of this process. Default: ``jax.process_index()``.
        world_size: the number of ranks. Default: ``jax.process_count()``.
        **options: options of ``tensilo.Loader``, such as ``columns``, ``pad``, ``order``, ``seed`` and
            ``last_batch``.
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
            raise ValueError("device and sharding exclude each other: pass only one of them")
        self._gpu = None if device is None else _gpu.opened(_gpu.number_of(device) or 0)
        self._loader = _tensilo.Loader(dataset, batch_size, rank=rank, world_size=world_size, _gpu=self._gpu, **options)
        self._sharding = sharding
        self._transform = transform

    def __getattr__(self, name: str) -> Any:
        # such as epoch, batches_left, set_epoch, state_dict, load_state_dict, metrics and indices
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        # unlike a generator, `map` can be shared by threads
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
        # JAX arrays must start at multiples of 16 bytes, but samples of different lengths do not
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
