"""Datasets and a loader for PyTorch.

``Dataset`` is for ``torch.utils.data.DataLoader``, which shuffles and has worker processes. ``Loader`` is
faster, and resumes exactly: its threads decode batches ahead of time, in the process of the training.
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
    """The samples of a dataset, by number.

    A sample is a dict of tensors; texts and byte strings are as they are, numbers are tensors without
    dimensions. A ``DataLoader`` with its default ``collate_fn`` reads a batch by one call, and gets a
    tensor for each column: also with workers, whose tensors are written to shared memory at once. Samples
    whose first extent varies become a nested tensor of the layout ``torch.jagged``, and those of which
    others vary a list of tensors. A ``collate_fn`` of your own gets mappings; ``dict(sample)`` is a dict.
    ``dataset[[5, 3]]`` is such a batch, too, as ``DataLoader(dataset, batch_size=None,
    sampler=BatchSampler(...))`` asks for.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes.
        columns: the names of the columns; all by default.
        dtypes: types that columns become, such as ``{"mel": "f32"}``.
        pad: columns of samples of different shapes that become one tensor in a batch of a ``DataLoader``: a
            dict from names to the value of what is filled up, or to ``(value, multiple)``.
        null_masks: whether a batch of a ``DataLoader`` has, for each column that may have nulls and is a
            tensor, a tensor of bool ``NAME_is_null``. Elements of nulls are zeros.
        transform: a function of a sample, or of each of a batch, which is then collated from samples.
        io: how files are read, see ``tensilo.open``.
    """

    def __init__(
        self,
        source: Any,
        columns: str | Sequence[str] | None = None,
        *,
        dtypes: Mapping[str, Any] | None = None,
        pad: Mapping[str, float | tuple[float, int]] | None = None,
        null_masks: bool = False,
        transform: Callable[[dict[str, Any]], Any] | None = None,
        io: _loader_options.Io = "auto",
    ) -> None:
        self.dataset = _loader_options.opened(source, io)
        self.columns = [columns] if isinstance(columns, str) else columns
        self.dtypes = dtypes
        self.pad = {name: how if isinstance(how, tuple) else (how, 1) for name, how in (pad or {}).items()}
        self.null_masks = null_masks
        self.transform = transform
        # errors of names and types come now
        batch = self.dataset.take([], self.columns, dtypes=dtypes)
        for name, column in batch.items():
            if self.dataset.schema[name]._advice is not None:
                column.array()  # raises: the elements are not the values
        for name, (value, multiple) in self.pad.items():
            batch[name].padded(value, multiple=multiple)

    def __len__(self) -> int:
        return len(self.dataset)

    def __repr__(self) -> str:
        return f"tensilo.torch.Dataset of {self.dataset!r}"

    def __getitem__(self, index: Any) -> Any:
        """Returns a sample, or of several numbers a batch: tensors as a ``DataLoader`` collates them."""
        if hasattr(index, "__index__") and getattr(index, "ndim", 0) == 0:
            row = self.__getitems__([index.__index__()])[0]
            return row.as_dict() if isinstance(row, _Row) else row
        index = self.dataset.take(index, []).samples.tolist()
        return default_collate(self.__getitems__(index)) if len(index) else _Fetch(self, index).tensors()

    def __getitems__(self, indices: Sequence[int]) -> list[Any]:
        fetch = _Fetch(self, indices)
        rows = [_Row(fetch, i) for i in range(len(indices))]
        return [self.transform(row.as_dict()) for row in rows] if self.transform else rows


class _Fetch:
    """The samples of a batch, which are read when the first is looked at."""

    def __init__(self, dataset, indices):
        self._dataset = dataset
        self._indices = indices
        self._batch = None
        self.count = len(indices)

    @property
    def batch(self):
        """The samples, read by one call."""
        if self._batch is None:
            source = self._dataset
            self._batch = source.dataset.take(self._indices, source.columns, dtypes=source.dtypes)
        return self._batch

    def tensors(self):
        """Returns a tensor for each column; in a worker process in shared memory."""
        if get_worker_info() is None:
            return self._of_columns(self.batch, False)
        source = self._dataset
        names = source.columns or source.dataset.columns
        direct = [name for name in names if self._is_read_directly(source.dataset.schema[name])]
        rest = [name for name in names if name not in direct]
        tensors = {}
        if rest:
            tensors = self._of_columns(source.dataset.take(self._indices, rest, dtypes=self._dtypes(rest)), True)
        tensors |= {name: self._shared(source.dataset[name]) for name in direct}
        return {name: tensors.pop(name) for name in names} | tensors

    def _of_columns(self, batch, is_shared):
        """Returns the tensors of a batch that was read."""
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
        """Returns whether a column is read to shared memory at once: it has one shape, and needs no mask."""
        has_mask = column.nullable and self._dataset.null_masks
        return not column.levels and None not in column.shape and column.dtype not in _TEXTS and not has_mask

    def _shared(self, column):
        dtype = self._dtypes([column.name]).get(column.name)
        stored = column.dtype if dtype is None else _tensilo.tensor(dtype).dtype
        out = in_shared_memory((self.count, *column.shape), dtype_of(stored))
        return column.take(self._indices, dtype=dtype, out=out)

    def _dtypes(self, names):
        return {name: dtype for name, dtype in (self._dataset.dtypes or {}).items() if name in names}


_TEXTS = ("utf8", "bytes")


class _Row(Mapping):
    """A sample of a batch that is read when it is looked at."""

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
        # what a worker returns is read in the worker
        return dict, (self.as_dict(),)


def _sample(column, index):
    """Returns a sample of a column: a tensor, or what has none."""
    sample = column[index]
    if isinstance(sample, _tensilo.Array):
        return torch.from_dlpack(sample)
    if sample is None or isinstance(sample, (str, bytes, list)):
        return sample
    return torch.tensor(sample, dtype=dtype_of(column.dtype))


def _collate_rows(rows, *, collate_fn_map=None):
    """Collates samples: those of one batch in its order are one read, and others as dicts."""
    fetch = rows[0].fetch
    is_whole = len(rows) == fetch.count and all(row.fetch is fetch and row.index == i for i, row in enumerate(rows))
    if is_whole:
        return fetch.tensors()
    return default_collate([row.as_dict() for row in rows])


default_collate_fn_map[_Row] = _collate_rows


class Loader(IterableDataset):
    """Batches of tensors, which threads decode ahead of time.

    A batch is a dict from names to tensors: of samples of a fixed shape, or padded, one tensor; of samples
    whose first extent varies a nested tensor of the layout ``torch.jagged``; of those of which other
    extents vary a list of tensors. Texts and lists are lists.

    ``for batch in loader`` delivers an epoch, and the next ``for`` the next one. ``state_dict()`` and
    ``load_state_dict()`` resume exactly, with any number of ranks and any batch size. Each rank has its
    share: rank and world size are those of ``torch.distributed``, or of ``RANK`` and ``WORLD_SIZE``.

    In a worker of a ``DataLoader(loader, batch_size=None, num_workers=n)`` it has no threads, and delivers
    the share of the worker, in the same order for any number of workers.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes.
        batch_size: the samples of a batch of this rank.
        device: "cuda", or one such as "cuda:1": tensors are in the memory of this GPU, which decodes them while
            the training works with the batch before. Texts and lists stay lists. Tensors are complete for any
            stream; to use one on another stream than the loop does, call ``tensor.record_stream``.
        min_device_bytes: batches that are shorter, as they are delivered, are decoded by the processor, and sent
            to the GPU. The default is 1 MiB; 0 is none.
        pin_memory: whether tensors are in pinned memory, for copies to a device that do not block.
        null_masks: whether a batch has, for each column that may have nulls and is a tensor, a tensor of bool
            ``NAME_is_null``. Elements of nulls are zeros.
        transform: a function of a batch, as a dict of tensors, whose result is delivered in its place. It runs
            on the thread that iterates, or in the worker of a ``DataLoader``; it takes no part in the state.
        io: how files are read, see ``tensilo.open``.
        rank, world_size: both or none.
        columns, dtypes, pad: as those of ``Dataset``.
        order: "windowed" (the default), "shuffled", or "sequential".
        seed: that of the order; 0 by default.
        last_batch: how an epoch ends: "drop" (the default), "pad", or "exact".
        decode_threads: the maximum number of threads that decode at the same time; "auto" (the default) leaves
            a processor to the training.
        window, io_depth, prefetch, on_damage: see ``tensilo.Loader``.
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
            raise ValueError("pin_memory is for tensors that are copied to a device: with device, they are there")
        if device is None and min_device_bytes is not None:
            raise ValueError("min_device_bytes is for a loader with a device")
        if (rank is None) != (world_size is None):
            raise ValueError("rank and world_size belong together: pass both, or none of them")
        if rank is None:
            rank, world_size = _rank_and_world_size()
        if pin_memory and not getattr(torch, "accelerator", torch.cuda).is_available():
            warnings.warn("pin_memory: there is no accelerator, so memory is not pinned", stacklevel=2)
            pin_memory = False
        self.dataset = _loader_options.opened(source, io)
        self.batch_size, self.rank, self.world_size = batch_size, rank, world_size
        self.pin_memory, self.null_masks, self.transform = pin_memory, null_masks, transform
        self.device, self._min_device_bytes = device, min_device_bytes
        self._options = options
        self._loader = self._make_loader()
        # where a worker of a DataLoader is, and whether it has left an epoch early
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
        """Returns the number of batches of a whole epoch."""
        return len(self._loader)

    @property
    def batches_left(self) -> int:
        """The number of batches that the next ``for`` delivers: fewer after a state was loaded."""
        return self._loader.batches_left

    def __repr__(self) -> str:
        return f"tensilo.torch.Loader({self._loader!r}, rank {self.rank} of {self.world_size})"

    @property
    def epoch(self) -> int:
        """The epoch of the state, counted from 0: after the last batch of an epoch, the next one.

        ``for epoch in range(loader.epoch, epochs)`` goes on where a state is that was loaded.
        """
        return self._loader.epoch

    def set_epoch(self, epoch: int) -> None:
        """Makes the next iteration begin at the start of an epoch."""
        self._worker_state, self._left_early = None, False
        self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """Returns where the loader is, after the batches that were taken.

        In a worker of a ``DataLoader`` it is where the worker is, for a worker of the same number.
        """
        return self._loader.state_dict() if self._worker_state is None else self._worker_state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Makes the next iteration go on from a state, of any number of ranks and any batch size."""
        self._loader.load_state_dict(state_dict)
        self._worker_state = state_dict if state_dict.get("taken") else None
        self._left_early = False

    def stats(self) -> dict[str, Any]:
        """Returns what the loader did in the last iteration, and what to do, "verdict"."""
        return self._loader.stats()

    def samples(self, step: int) -> torch.Tensor:
        """Returns the numbers of the samples of a step of this rank, as a tensor."""
        return torch.from_dlpack(self._loader.samples(step))

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        if worker is not None and self.device is not None:
            raise ValueError("a loader with a device works in the process of the training: iterate over it there")
        if worker is not None:
            return self._worker_batches(worker.id, worker.num_workers)
        if self._worker_state is not None:
            raise ValueError("this is the state of a worker of a DataLoader: load it there, with as many workers")
        if self._gpu is not None:
            batches = self._loader._iter_on_device(self._gpu.allocate, self._gpu.stream)
            return _Batches(batches, lambda item: self._gpu.tensors(*item, null_masks=self.null_masks), self.transform)
        options = {"pin_memory": self.pin_memory, "null_masks": self.null_masks}
        return _Batches(iter(self._loader), lambda batch: of_batch(batch, **options), self.transform)

    def _worker_batches(self, worker, num_workers):
        """Yields every n-th batch, read by this thread."""
        if self._left_early:
            # what is left of an epoch that was left early is over
            self.set_epoch(self.epoch + 1)
        taken = (self._worker_state or {}).get("taken", 0)
        start, self._worker_state = self._loader.state_dict(), None
        position = start["position"]
        reader = self._loader.reader()
        for step in range(worker + taken * num_workers, self._loader._batches_from(position), num_workers):
            batch = reader.take(self._loader.samples(step, position=position))
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
    """The batches of an epoch as tensors. Threads may share it: a generator would refuse all but one."""

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
    """Returns the number in an environment variable."""
    text = os.environ.get(name)
    if not text:
        return default
    if not text.isdecimal() or int(text) < minimum:
        ways = "correct or unset it, or pass rank and world_size"
        raise ValueError(f"the environment variable {name} is {text!r}, not a number of at least {minimum}: {ways}")
    return int(text)
