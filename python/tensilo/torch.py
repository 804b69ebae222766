"""A dataset and a loader for PyTorch.

``Dataset`` is for ``torch.utils.data.DataLoader``, which shuffles and has worker processes. ``Loader`` is faster and
resumes exactly. Its threads prefetch batches in the training process.

With the default ``collate_fn``, ``Dataset`` reads a whole batch in one call. The samples that a ``DataLoader`` fetches
are only placeholders. Collating them reads the batch; a worker reads it directly into shared memory.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Unpack

import torch
from torch.utils.data import Dataset as _TorchDataset
from torch.utils.data import IterableDataset, default_collate, get_worker_info
from torch.utils.data._utils.collate import default_collate_fn_map

from . import _loader_options, _tensilo
from ._torch_device import TorchDevice
from ._torch_tensors import dtype_of, in_shared_memory, masks_of, of_batch, or_list

__all__ = ["Dataset", "Loader"]


class Dataset(_TorchDataset):
    """A map-style dataset for ``torch.utils.data.DataLoader``.

    A sample is a dict of tensors. Scalars are zero-dimensional tensors; text and bytes stay ``str`` and ``bytes``.

    A ``DataLoader`` with its default ``collate_fn`` reads a batch in one call, and gets one tensor per column. In
    workers, tensors are decoded directly into shared memory. Samples whose first extent varies become a nested tensor
    with layout ``torch.jagged``; if other extents vary, they become a list of tensors. A custom ``collate_fn`` gets
    one mapping per sample; ``dict(sample)`` converts it to a dict.

    A list of indices, as in ``dataset[[5, 3]]``, also returns such a batch.
    ``DataLoader(dataset, batch_size=None, sampler=BatchSampler(...))`` uses this.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``.
        columns: the columns to read. Default: all columns.
        casts: the dtypes to convert columns to, such as ``{"mel": "f32"}``. Default: the stored dtypes.
        pad: how to pad columns whose samples differ in shape, so that each column becomes one tensor in a batch of a
            ``DataLoader``: a dict from names to padding values or to ``(value, multiple)``. The padded length is
            rounded up to a multiple of ``multiple``. Default: no padding.
        null_masks: whether a batch of a ``DataLoader`` has a bool tensor ``NAME_is_null`` for each nullable column
            that is a tensor. The elements of null samples are zeros. Default: False.
        transform: a function that is applied to every sample. If given, samples are transformed and collated one by
            one. Default: None.
        io: how files are read; see ``tensilo.open``. Default: "auto".
    """

    def __init__(
        self,
        source: Any,
        columns: str | Sequence[str] | None = None,
        *,
        casts: Mapping[str, Any] | None = None,
        pad: Mapping[str, float | tuple[float, int]] | None = None,
        null_masks: bool = False,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        io: _loader_options.Io = "auto",
    ) -> None:
        self.dataset = _loader_options.opened(source, io)
        self.columns = [columns] if isinstance(columns, str) else columns
        self.casts = casts
        self.pad = {name: how if isinstance(how, tuple) else (how, 1) for name, how in (pad or {}).items()}
        self.null_masks = null_masks
        self.transform = transform
        # raise errors about names and casts now, not in a worker
        batch = self.dataset.take([], self.columns, casts=casts)
        for name, column in batch.items():
            if self.dataset.schema[name]._advice is not None:
                column.array()  # raises, because the elements only encode the values
        for name, (value, multiple) in self.pad.items():
            batch[name].padded(value, multiple=multiple)

    def __len__(self) -> int:
        return len(self.dataset)

    def __repr__(self) -> str:
        return f"tensilo.torch.Dataset of {self.dataset!r}"

    def __getitem__(self, index: Any) -> Any:
        """Returns a sample. For several indices, returns the batch that a ``DataLoader`` would collate."""
        if hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0:
            row = self.__getitems__([index.__index__()])[0]
            return row.as_dict() if isinstance(row, _Row) else row
        index = self.dataset.take(index, []).indices.tolist()
        return default_collate(self.__getitems__(index)) if len(index) else _Fetch(self, index).tensors()

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        fetch = _Fetch(self, indices)
        rows = [_Row(fetch, i) for i in range(len(indices))]
        return [self.transform(row.as_dict()) for row in rows] if self.transform else rows


class _Fetch:
    """A batch that is read when the first of its samples is accessed."""

    def __init__(self, dataset, indices):
        self._dataset = dataset
        self._indices = indices
        self._batch = None
        self.count = len(indices)

    @property
    def batch(self):
        """The samples, which are read in one call."""
        if self._batch is None:
            source = self._dataset
            self._batch = source.dataset.take(self._indices, source.columns, casts=source.casts)
        return self._batch

    def tensors(self):
        """Returns one tensor per column. In a worker process, the tensors are in shared memory."""
        if get_worker_info() is None:
            return self._of_columns(self.batch, False)
        source = self._dataset
        names = source.columns or source.dataset.columns
        direct = [name for name in names if self._is_read_directly(source.dataset.schema[name])]
        rest = [name for name in names if name not in direct]
        tensors = {}
        if rest:
            tensors = self._of_columns(source.dataset.take(self._indices, rest, casts=self._casts(rest)), True)
        tensors |= {name: self._shared(source.dataset[name]) for name in direct}
        return {name: tensors.pop(name) for name in names} | tensors

    def _of_columns(self, batch, is_shared):
        """Converts a batch to tensors."""
        source = self._dataset
        tensors = {name: self._of_column(name, column, is_shared) for name, column in batch.items()}
        return tensors | masks_of(batch) if source.null_masks else tensors

    def _of_column(self, name, column, is_shared):
        if name not in self._dataset.pad:
            return or_list(column)
        value, multiple = self._dataset.pad[name]
        if not is_shared:
            return torch.from_dlpack(column.padded(value, multiple=multiple))
        out = in_shared_memory(column.padded_shape(multiple=multiple), dtype_of(column.dtype))
        return column.padded(value, multiple=multiple, out=out)

    def _is_read_directly(self, column):
        """Returns whether a column can be decoded directly into shared memory.

        This requires numbers of a fixed shape, and no null mask.
        """
        has_mask = column.nullable and self._dataset.null_masks
        return not column.levels and None not in column.shape and column.dtype not in _TEXTS and not has_mask

    def _shared(self, column):
        dtype = self._casts([column.name]).get(column.name)
        stored = column.dtype if dtype is None else _tensilo.tensor(dtype).dtype
        out = in_shared_memory((self.count, *column.shape), dtype_of(stored))
        return column.take(self._indices, dtype=dtype, out=out)

    def _casts(self, names):
        return {name: dtype for name, dtype in (self._dataset.casts or {}).items() if name in names}


_TEXTS = ("utf8", "bytes")


class _Row(Mapping):
    """A sample of a batch. The first access to a sample reads the whole batch."""

    __slots__ = ("fetch", "index")

    def __init__(self, fetch, index):
        self.fetch = fetch
        self.index = index

    def __getitem__(self, name):
        return _sample(self.fetch.batch[name], self.index)

    def __iter__(self):
        return iter(self.fetch.batch.keys())

    def __len__(self) -> int:
        return len(self.fetch.batch.keys())

    def __repr__(self) -> str:
        return repr(self.as_dict())

    def as_dict(self):
        """Returns the sample as tensors."""
        return {name: self[name] for name in self}

    def __reduce__(self):
        # a worker must send the values, not the unread batch
        return dict, (self.as_dict(),)


def _sample(column, index):
    """Returns a sample of a column as a tensor, or unchanged if a tensor cannot hold it."""
    sample = column[index]
    if isinstance(sample, _tensilo.Array):
        return torch.from_dlpack(sample)
    if sample is None or isinstance(sample, (str, bytes, list)):
        return sample
    return torch.tensor(sample, dtype=dtype_of(column.dtype))


def _collate_rows(rows, *, collate_fn_map=None):
    """Collates samples.

    If they are all samples of one batch, in its order, the batch is read in one call. Otherwise, they are collated as
    dicts.
    """
    fetch = rows[0].fetch
    is_whole = len(rows) == fetch.count and all(row.fetch is fetch and row.index == i for i, row in enumerate(rows))
    if is_whole:
        return fetch.tensors()
    return default_collate([row.as_dict() for row in rows])


default_collate_fn_map[_Row] = _collate_rows


class Loader(IterableDataset):
    """Delivers batches of tensors, which threads prefetch.

    A batch is a dict from names to tensors. Samples that have a fixed shape or are padded become one tensor. Samples
    whose first extent varies become a nested tensor with layout ``torch.jagged``; if other extents vary, they become a
    list of tensors. Text and lists become Python lists.

    ``for batch in loader`` delivers one epoch, and the next ``for`` delivers the next epoch. Each rank gets its share
    of the samples. ``state_dict()`` and ``load_state_dict()`` resume exactly, even with another number of ranks or
    another batch size.

    In a worker of ``DataLoader(loader, batch_size=None, num_workers=n)``, the loader starts no threads and delivers
    only the worker's share of the batches. The order of all batches is the same for any number of workers.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``.
        batch_size: the number of samples in a batch of this rank.
        rank: the rank of this process. If you pass it, also pass ``world_size``. Default: the rank in
            ``torch.distributed`` if it is initialized, else the environment variable ``RANK``, else 0.
        world_size: the number of ranks. Default: the world size of ``torch.distributed`` if it is initialized, else
            the environment variable ``WORLD_SIZE``, else 1.
        device: the GPU that decodes and holds the tensors: "cuda", or a device such as "cuda:1". It decodes a batch
            while the training step works on the previous one. Text and lists stay Python lists. The tensors can be
            used on any stream. Call ``tensor.record_stream`` to use one on a stream other than the stream of the loop.
            Default: None, which decodes on the CPU.
        min_device_bytes: a batch with fewer delivered bytes than this is decoded on the CPU and sent to the GPU. With
            0, the GPU decodes every batch. Only with ``device``. Default: 1 MiB.
        pin_memory: whether tensors are in pinned memory, for non-blocking copies to a device. Default: False.
        null_masks: whether a batch has a bool tensor ``NAME_is_null`` for each nullable column that is a tensor. The
            elements of null samples are zeros. Default: False.
        transform: a function that takes a batch as a dict of tensors. Its result is delivered instead of the batch. It
            runs on the iterating thread, or in the worker of a ``DataLoader``. It is not part of the state. Default:
            None.
        io: how files are read; see ``tensilo.open``. Default: "auto".
        columns, casts, pad: see ``Dataset``.
        order: "windowed", "shuffled" or "sequential". Default: "windowed".
        seed: the seed of the shuffle. Default: 0.
        last_batch: what happens to samples that do not fill a batch on every rank: "drop", "pad" or "exact". Default:
            "drop".
        decode_threads: the maximum number of threads that decode at the same time. "auto" leaves one CPU for the
            training loop. Default: "auto".
        window_sizes, io_depth, prefetch, on_damage: see ``tensilo.Loader``.
    """

    def __init__(
        self,
        source: Any,
        batch_size: int,
        *,
        rank: int | None = None,
        world_size: int | None = None,
        device: str | torch.device | None = None,
        min_device_bytes: int | None = None,
        pin_memory: bool = False,
        null_masks: bool = False,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        io: _loader_options.Io = "auto",
        **options: Unpack[_loader_options.LoaderOptions],
    ) -> None:
        _loader_options.check(options)
        if device is not None and str(device) == "cpu":
            device = None
        if device is not None and pin_memory:
            raise ValueError("pin_memory does not apply with device: the tensors are already on the device")
        if device is None and min_device_bytes is not None:
            raise ValueError("min_device_bytes needs a device")
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size belong together: pass both or neither")
        if rank is None:
            rank, world_size = _rank_and_world_size()
        if pin_memory and not getattr(torch, "accelerator", torch.cuda).is_available():
            warnings.warn("pin_memory has no effect: there is no accelerator", stacklevel=2)
            pin_memory = False
        self.dataset = _loader_options.opened(source, io)
        self.batch_size, self.rank, self.world_size = batch_size, rank, world_size
        self.pin_memory, self.null_masks, self.transform = pin_memory, null_masks, transform
        self.device, self._min_device_bytes = device, min_device_bytes
        self._options = options
        self._loader = self._make_loader()
        # only in a DataLoader worker: the state of the worker, and whether it left its last epoch early
        self._worker_state: dict[str, Any] | None = None
        self._left_early = False

    def _make_loader(self):
        self._gpu = None if self.device is None else TorchDevice(self.device)
        return _tensilo.Loader(
            self.dataset,
            self.batch_size,
            rank=self.rank,
            world_size=self.world_size,
            _gpu=self._gpu and self._gpu.gpu,
            _min_device_bytes=self._min_device_bytes,
            **self._options,
        )

    def __len__(self) -> int:
        """Returns the number of batches in a whole epoch."""
        return len(self._loader)

    @property
    def batches_left(self) -> int:
        """The number of batches that the next ``for`` delivers: fewer than ``len`` if a loaded state is mid-epoch."""
        return self._loader.batches_left

    def __repr__(self) -> str:
        return f"tensilo.torch.Loader({self._loader!r}, rank {self.rank} of {self.world_size})"

    @property
    def epoch(self) -> int:
        """The epoch of the next batch, counted from 0. After the last batch of an epoch, it is the next epoch.

        After a state is loaded, ``for epoch in range(loader.epoch, epochs)`` resumes the training.
        """
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration start at the beginning of an epoch.

        Args:
            epoch: the epoch, counted from 0.
        """
        self._worker_state, self._left_early = None, False
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns the state after the delivered batches.

        In a worker of a ``DataLoader``, this is the state of that worker. Load it in the worker with the same id.
        """
        return self._loader.state_dict() if self._worker_state is None else self._worker_state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration resume from a state, with any number of ranks and any batch size.

        Args:
            state_dict: the result of ``state_dict``.
        """
        self._loader.load_state_dict(state_dict)
        self._worker_state = state_dict if state_dict.get("taken") else None
        self._left_early = False

    def metrics(self) -> dict[str, Any]:
        """Returns the metrics of the last iteration. The entry "verdict" says what limits the loader."""
        return self._loader.metrics()

    def indices(self, step: int) -> torch.Tensor:
        """Returns the indices of the samples that this rank takes in a step, as a tensor.

        Args:
            step: the step in the current epoch, counted from 0.
        """
        return torch.from_dlpack(self._loader.indices(step))

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is not None and self.device is not None:
            raise ValueError("a loader with a device does not work in DataLoader workers: iterate over it directly")
        if worker is not None:
            return self._worker_batches(worker.id, worker.num_workers)
        if self._worker_state is not None:
            raise ValueError("the loaded state belongs to a DataLoader worker: load it there, and keep num_workers")
        if self._gpu is not None:
            batches = self._loader._iter_on_device(self._gpu.allocate, self._gpu.stream)
            return _Batches(batches, lambda item: self._gpu.tensors(*item, null_masks=self.null_masks), self.transform)
        options = {"pin_memory": self.pin_memory, "null_masks": self.null_masks}
        return _Batches(iter(self._loader), lambda batch: of_batch(batch, **options), self.transform)

    def _worker_batches(self, worker, num_workers):
        """Yields every ``num_workers``-th batch, read on this thread."""
        if self._left_early:
            # the loop left the epoch early: skip the remaining batches
            self.set_epoch(self.epoch + 1)
        taken = (self._worker_state or {}).get("taken", 0)
        start, self._worker_state = self._loader.state_dict(), None
        position = start["position"]
        reader = self._loader.reader()
        for step in range(worker + taken * num_workers, self._loader._batches_from(position), num_workers):
            batch = reader.take(self._loader.indices(step, position=position))
            taken += 1
            self._left_early, self._worker_state = True, {**start, "taken": taken}
            tensors = of_batch(batch, null_masks=self.null_masks)
            yield self.transform(tensors) if self.transform else tensors
        self.set_epoch(start["epoch"] + 1)

    def __getstate__(self):
        state = {name: value for name, value in self.__dict__.items() if name not in ("_loader", "_gpu")}
        return {**state, "_state": self._loader.state_dict()}

    def __setstate__(self, state):
        reached = state.pop("_state")
        self.__dict__.update(state)
        self._loader = self._make_loader()
        self._loader.load_state_dict(reached)


class _Batches:
    """Iterates over an epoch as tensors. Unlike a generator, it can be shared by threads."""

    def __init__(self, batches, tensors, transform):
        self._batches, self._tensors, self._transform = batches, tensors, transform

    def __iter__(self):
        return self

    def __next__(self):
        tensors = self._tensors(next(self._batches))
        return self._transform(tensors) if self._transform else tensors


def _rank_and_world_size():
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return _env_int("RANK", 0, 0), _env_int("WORLD_SIZE", 1, 1)


def _env_int(name, default, minimum):
    """Returns the integer in an environment variable."""
    text = os.environ.get(name)
    if not text:
        return default
    if not text.isdecimal() or int(text) < minimum:
        ways = "correct or unset it, or pass rank and world_size"
        raise ValueError(f"environment variable {name} is {text!r}, but must be an integer >= {minimum}: {ways}")
    return int(text)
