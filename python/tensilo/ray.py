"""Converts files to datasets on a Ray cluster, and exchanges datasets with Ray Data.

Workers can be killed and tasks repeated at any time. A repeated task writes the same bytes, and readers see either
the complete version or nothing. All nodes must see inputs and outputs under the same paths.

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

# the default number of retries of a task whose worker dies
_RETRIES = 10
# the approximate size of a Ray Data block in memory
_BLOCK_BYTES = 64 << 20


def convert(
    inputs: Any,
    output: _Path,
    *,
    ray_remote_args: Mapping[str, Any] | None = None,
    run: Callable[[distributed.Task], distributed.Fragment] = distributed.run,
    **options: Any,
) -> _tensilo.Dataset:
    """Converts files to a new dataset on the cluster, and opens it.

    Even if workers fail, the files are equal, byte for byte, to the files that ``tensilo.convert`` writes with
    ``shard_bytes``.

    Args:
        inputs, output, **options: the arguments of ``tensilo.distributed.plan``.
        ray_remote_args: options of the Ray tasks, such as ``{"num_cpus": 2}``. Default: a task has one CPU, and is
            retried up to 10 times if its worker dies.
        run: the function that runs a task. Default: ``tensilo.distributed.run``. A replacement must call
            that function.
    """
    tasks = distributed.plan(inputs, output, **options)
    remote: Any = ray.remote(**{"num_cpus": 1, "max_retries": _RETRIES, **(ray_remote_args or {})})(run)
    pending = [remote.remote(task) for task in tasks]
    try:
        fragments = ray.get(pending)
    except BaseException:
        for reference in pending:
            ray.cancel(reference)
        raise
    distributed.commit(output, fragments)
    return _tensilo.open(output)


def read(
    source: Any, columns: str | Sequence[str] | None = None, *, override_num_blocks: int | None = None, **options: Any
) -> ray.data.Dataset:
    """Returns a Ray Data dataset that contains every sample of a dataset once.

    Its blocks are the Arrow tables that ``pyarrow.table`` makes from a ``Batch``: tensors are fixed-size lists, and
    bf16 becomes float32.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``. Tasks read its current version.
        columns: the columns to read. Default: all columns.
        override_num_blocks: the number of read tasks. Default: chosen by Ray.
        **options: options of ``ray.data.read_datasource``.
    """
    return ray.data.read_datasource(Source(source, columns), override_num_blocks=override_num_blocks, **options)


def write(
    dataset: ray.data.Dataset,
    output: _Path,
    *,
    rows_per_file: int | None = None,
    concurrency: int | None = None,
    ray_remote_args: dict[str, Any] | None = None,
    **options: Any,
) -> _tensilo.Dataset:
    """Writes a Ray Data dataset to a new dataset, and opens it.

    Readers see the whole dataset, or nothing if any task fails. Samples are in the order of the blocks if Ray
    preserves that order (``DataContext.get_current().execution_options.preserve_order``).

    Args:
        dataset: the Ray Data dataset.
        output: the folder, or a prefix of an object store.
        rows_per_file: the minimum number of samples in a file. Default: one block per file.
        concurrency, ray_remote_args: see ``ray.data.Dataset.write_datasink``.
        **options: the options bf16, casts, columns, skip, shapes, null_elements and profile of
            ``tensilo.convert``. Lists of numbers can have any length unless ``shapes`` declares it.

    Raises:
        ValueError: the Ray Data dataset has no rows.
    """
    sink = Sink(output, rows_per_file=rows_per_file, **options)
    dataset.write_datasink(sink, concurrency=concurrency, ray_remote_args=ray_remote_args)
    return _tensilo.open(output)


class Source(Datasource):
    """A data source for ``ray.data.read_datasource``. Each task reads a range of samples.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``.
        columns: the columns to read. Default: all columns.
    """

    def __init__(self, source: Any, columns: str | Sequence[str] | None = None) -> None:
        super().__init__()
        self._dataset = opened(source)
        self._columns = [columns] if isinstance(columns, str) else columns
        self._sample_bytes = sample_bytes(self._dataset, self._columns)

    def estimate_inmemory_data_size(self) -> int:
        """Returns the approximate size of all blocks, in bytes."""
        return self._sample_bytes * len(self._dataset)

    def get_read_tasks(
        self, parallelism: int, per_task_row_limit: int | None = None, data_context: Any = None
    ) -> list[ReadTask]:
        """Returns about ``parallelism`` tasks that read ranges of equal length."""
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
    """A sink for ``ray.data.Dataset.write_datasink`` that writes a new dataset. See ``write`` for the arguments.

    Each task writes a file that readers do not see yet. When all files are written, one version publishes them. If
    any task fails, no version is published. ``tensilo dataset gc`` can remove the files once the folder contains a
    dataset.
    """

    def __init__(
        self,
        output: _Path,
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
        self._folder = absolute(output)
        if _tensilo._has_manifest(self._folder):
            raise FileExistsError(f"{self._folder}: the dataset already exists; choose another folder")
        # drawn once on the driver, so that all attempts of a task write the same file
        self._job = Job(1, (1 << 62) | secrets.randbits(62), "write", None)
        self._rows_per_file = rows_per_file
        self._options = conversion(bf16, casts, columns, skip, shapes, null_elements, profile)

    def get_name(self) -> str:
        """Returns the name that Ray displays."""
        return "Tensilo"

    @property
    def min_rows_per_write(self) -> int | None:
        """The minimum number of samples in a file."""
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
    """Replaces Ray's tensor types in a table with Arrow's."""
    for i, field in enumerate(table.schema):
        if isinstance(field.type, pa.ExtensionType) and field.type.extension_name.startswith("ray.data."):
            table = table.set_column(i, field.name, _plain_column(field.name, table.column(i).combine_chunks()))
    return table


def _plain_column(name: str, array: Any) -> pa.Array:
    shape = getattr(array.type, "shape", None)
    if shape is None:
        raise TypeError(f"column {name!r} has type {array.type}: convert tensors of different shapes to lists")
    value_type = array.type.storage_type.value_type
    storage = array.storage.cast(pa.list_(value_type, math.prod(shape)))
    return pa.ExtensionArray.from_storage(pa.fixed_shape_tensor(value_type, list(shape)), storage)
