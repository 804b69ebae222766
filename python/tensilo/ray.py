"""Datasets on a cluster of Ray: conversion, and datasets of Ray Data.

Workers may be killed and tasks repeated at any time: files have the same bytes, and readers see a whole
version, or none. All nodes see inputs and outputs under the same paths.

    import tensilo.ray

    tensilo.ray.convert("/data/crawl/*.parquet", "s3://bucket/train", shard_bytes="1GiB")
    tensilo.ray.read("s3://bucket/train").map_batches(model)
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any

import pyarrow as pa
import ray
from ray.data import Datasink, Datasource, ReadTask
from ray.data.block import BlockAccessor, BlockMetadata

from . import _tensilo, distributed
from ._convert import conversion
from ._lists import with_open_lists
from ._ranges import ranges, sample_bytes
from .distributed._paths import absolute, opened
from .distributed._task import Job

__all__ = ["Sink", "Source", "convert", "read", "write"]

_Path = str | PathLike[str]

# a task that is killed is run again so often, unless the caller says otherwise
_RETRIES = 10
# about the memory of a block of Ray Data
_BLOCK_BYTES = 64 << 20


def convert(
    inputs: Any,
    out: _Path,
    *,
    ray_remote_args: Mapping[str, Any] | None = None,
    run: Callable[[distributed.Task], distributed.Fragment] = distributed.run,
    **options: Any,
) -> _tensilo.Dataset:
    """Converts files to a new dataset on the cluster, and opens it.

    The files are those of ``tensilo.convert`` with ``shard_bytes``, byte for byte, whatever fails.

    Args:
        inputs, out: as those of ``tensilo.distributed.plan``, and so are other options.
        ray_remote_args: the options of Ray's tasks, such as ``{"num_cpus": 2}``. By default a task has one
            processor, and is run again up to 10 times if its worker dies.
        run: what runs a task: ``tensilo.distributed.run``, or a function that calls it.
    """
    tasks = distributed.plan(inputs, out, **options)
    remote: Any = ray.remote(**{"num_cpus": 1, "max_retries": _RETRIES, **(ray_remote_args or {})})(run)
    pending = [remote.remote(task) for task in tasks]
    try:
        fragments = ray.get(pending)
    except BaseException:
        for reference in pending:
            ray.cancel(reference)
        raise
    distributed.commit(out, fragments)
    return _tensilo.open(out)


def read(
    source: Any, columns: str | Sequence[str] | None = None, *, override_num_blocks: int | None = None, **options: Any
) -> ray.data.Dataset:
    """Returns a dataset of Ray Data with the samples of a dataset, each once.

    Blocks are tables of Arrow, as ``pyarrow.table`` makes one of a ``Batch``: tensors are lists of a fixed
    size, and bf16 becomes float32.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes. Tasks read the version that it is now.
        columns: the names of the columns; all by default.
        override_num_blocks: the number of read tasks; Ray chooses by default.

    Other options are those of ``ray.data.read_datasource``.
    """
    return ray.data.read_datasource(Source(source, columns), override_num_blocks=override_num_blocks, **options)


def write(
    dataset: ray.data.Dataset,
    out: _Path,
    *,
    rows_per_file: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **options: Any,
) -> _tensilo.Dataset:
    """Writes a dataset of Ray Data to a new dataset, and opens it.

    Readers see all of it, or nothing if any task fails. Samples have the order of the blocks if Ray keeps
    it (``DataContext.get_current().execution_options.preserve_order``).

    Args:
        out: the folder, or a prefix of an object store.
        rows_per_file: the samples of a file, at least; a block by default.
        concurrency, ray_remote_args: as those of ``ray.data.Dataset.write_datasink``.

    Other options are those of ``tensilo.convert``: bf16, casts, columns, skip, shapes, null_elements and
    profile. Lists of numbers have any length, unless ``shapes`` declares another one.

    Raises:
        ValueError: the dataset has no rows, of which no dataset can be made.
    """
    sink = Sink(out, rows_per_file=rows_per_file, **options)
    dataset.write_datasink(sink, concurrency=concurrency, ray_remote_args=ray_remote_args)
    return _tensilo.open(out)


class Source(Datasource):
    """The samples of a dataset, for ``ray.data.read_datasource``. Each task reads a range of them."""

    def __init__(self, source: Any, columns: str | Sequence[str] | None = None) -> None:
        super().__init__()
        self._dataset = opened(source)
        self._columns = [columns] if isinstance(columns, str) else columns
        self._sample_bytes = sample_bytes(self._dataset, self._columns)

    def estimate_inmemory_data_size(self) -> int:
        """Returns about how many bytes all blocks have."""
        return self._sample_bytes * len(self._dataset)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Returns tasks for about so many ranges of equal length."""
        schema = pa.table(self._dataset.take([], self._columns)).schema
        tasks = []
        for samples in ranges(len(self._dataset), parallelism):
            metadata = BlockMetadata(
                num_rows=len(samples),
                size_bytes=len(samples) * self._sample_bytes,
                input_files=None,
                exec_stats=None,
            )
            read = _Read(self._dataset, self._columns, samples, max(1, _BLOCK_BYTES // self._sample_bytes))
            tasks.append(ReadTask(read, metadata, schema=schema, per_task_row_limit=per_task_row_limit))
        return tasks


class _Read:
    """Reads a range of samples as blocks."""

    def __init__(
        self, dataset: _tensilo.Dataset, columns: Sequence[str] | None, samples: range, block_samples: int
    ) -> None:
        self._dataset = dataset
        self._columns = columns
        self._samples = samples
        self._block_samples = block_samples

    def __call__(self) -> Iterator[pa.Table]:
        for start in range(0, len(self._samples), self._block_samples):
            yield pa.table(self._dataset.take(self._samples[start : start + self._block_samples], self._columns))


class Sink(Datasink[list[distributed.Fragment]]):
    """A new dataset, for ``ray.data.Dataset.write_datasink``.

    Each task writes a file that nobody sees. When all are written, one version lists them. If any task
    fails, there is no version, and ``tensilo dataset gc`` removes the files when the folder has a dataset.
    """

    def __init__(
        self,
        out: _Path,
        *,
        rows_per_file: int | None = None,
        bf16: bool = False,
        casts: Mapping[str, Any] | None = None,
        columns: str | Sequence[str] | None = None,
        skip: str | Sequence[str] = (),
        shapes: Mapping[str, Sequence[int | None]] | None = None,
        null_elements: str = "keep",
        profile: str | Mapping[str, str] = "balanced",
    ) -> None:
        self._folder = absolute(out)
        if _tensilo._has_manifest(self._folder):
            raise FileExistsError(f"{self._folder}: a dataset is there; choose another folder")
        # drawn once, on the driver: attempts of a task write the same file
        self._job = Job(1, (1 << 62) | secrets.randbits(62), "write", None)
        self._rows_per_file = rows_per_file
        self._options = conversion(bf16, casts, columns, skip, shapes, null_elements, profile)

    def get_name(self) -> str:
        """Returns the name that Ray shows."""
        return "Tensilo"

    @property
    def min_rows_per_write(self) -> int | None:
        """The samples of a file, at least."""
        return self._rows_per_file

    def write(self, blocks: Iterable[Any], ctx: Any) -> list[distributed.Fragment]:
        """Writes the file of a task."""
        tables = [_plain(BlockAccessor.for_block(block).to_arrow()) for block in blocks]
        tables = [table for table in tables if table.num_rows]
        if not tables:
            return []
        job = (self._folder, self._job.version, self._job.number)
        table = pa.concat_tables(tables)
        options = {**self._options, "shapes": with_open_lists(table.schema, self._options["shapes"])}
        file, schema = _tensilo._write_task(job, ctx.task_idx, table, options, 1)
        return [distributed.Fragment(self._job, file, schema)]

    def on_write_complete(self, write_result: Any) -> None:
        """Publishes the version."""
        fragments = [fragment for written in write_result.write_returns for fragment in written or ()]
        distributed.commit(self._folder, fragments)


def _plain(table: pa.Table) -> pa.Table:
    """Returns a table whose tensors have Arrow's own type in place of Ray's."""
    for i, field in enumerate(table.schema):
        if isinstance(field.type, pa.ExtensionType) and field.type.extension_name.startswith("ray.data."):
            table = table.set_column(i, field.name, _plain_column(field.name, table.column(i).combine_chunks()))
    return table


def _plain_column(name: str, array: Any) -> pa.Array:
    shape = getattr(array.type, "shape", None)
    if shape is None:
        raise TypeError(f"column {name!r} is {array.type}: make lists of tensors of different shapes")
    value_type = array.type.storage_type.value_type
    storage = array.storage.cast(pa.list_(value_type, math.prod(shape)))
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(value_type, list(shape)), storage)
