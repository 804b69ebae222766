"""Converts files to datasets with Spark, and provides a Spark data source.

Workers can be lost and tasks repeated at any time, as with ``tensilo.distributed``. All workers must see inputs and
outputs under the same paths.

    spark.dataSource.register(tensilo.spark.Source)
    frame = spark.read.format("tensilo").load("s3://bucket/train")
    frame.write.format("tensilo").mode("append").save("s3://bucket/other")
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from os import PathLike
from typing import Any

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceArrowWriter,
    DataSourceReader,
    InputPartition,
    WriterCommitMessage,
)
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from . import _tensilo, distributed
from ._convert import conversion
from ._lists import with_open_lists
from ._ranges import ranges, sample_bytes
from .distributed._paths import absolute
from .distributed._task import Job

__all__ = ["Source", "convert"]

# the approximate sizes of a partition, and of a batch in a partition
_PARTITION_BYTES = 128 << 20
_BATCH_BYTES = 16 << 20

# types that Spark lacks, and wider types that hold all of their values
_WIDER = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20),
    pa.float16(): pa.float32(),
}


def convert(spark: SparkSession, inputs: Any, output: str | PathLike[str], **options: Any) -> _tensilo.Dataset:
    """Converts files to a new dataset, with one Spark task per data file, and opens it.

    Spark can repeat tasks: a repeated task writes the same file.

    Args:
        spark: the Spark session.
        inputs, output, **options: the arguments of ``tensilo.distributed.plan``, which also lists the errors.
    """
    tasks = distributed.plan(inputs, output, **options)
    fragments = spark.sparkContext.parallelize(tasks, len(tasks)).map(distributed.run).collect()
    distributed.commit(output, fragments)
    return _tensilo.open(output)


class Source(DataSource):
    """The Spark data source ``tensilo``. The path is the folder or object prefix of a dataset.

    Options for reading are ``columns``, a comma-separated list, and ``partitions``, the number of partitions (by
    default, a partition takes about 128 MiB). Options for writing are ``bf16`` ("true") and ``profile``. Arrays of
    numbers become tensors whose length varies.

    A frame becomes a new dataset, or is appended to an existing dataset with the same columns. Readers see the whole
    frame or nothing. Appending an empty frame does nothing, and writing one to a new dataset raises ``ValueError``.
    """

    @classmethod
    def name(cls) -> str:
        """Returns the name of the format."""
        return "tensilo"

    def schema(self) -> StructType:
        """Returns the columns. Unsigned integers become wider signed ones, and f16 and bf16 become float32."""
        dataset, columns = self._opened()
        fields = pa.table(dataset.take([], columns)).schema
        return from_arrow_schema(pa.schema([field.with_type(_wider(field.type)).remove_metadata() for field in fields]))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Returns a reader of the current version."""
        return _Reader(*self._opened(), to_arrow_schema(schema), self.options.get("partitions"))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceArrowWriter:
        """Returns the writer of a new version."""
        return _Writer(absolute(self.options["path"]), dict(self.options), overwrite)

    def _opened(self) -> tuple[_tensilo.Dataset, list[str] | None]:
        columns = self.options.get("columns")
        return _tensilo.open(absolute(self.options["path"])), columns.split(",") if columns else None


def _wider(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_fixed_size_list(type_) or pa.types.is_large_list(type_) or pa.types.is_list(type_):
        return pa.list_(type_.value_field.with_type(_wider(type_.value_type)))
    return _WIDER.get(type_, type_)


@dataclass
class _Samples(InputPartition):
    samples: range


class _Reader(DataSourceReader):
    """Reads ranges of samples, one per task."""

    def __init__(
        self, dataset: _tensilo.Dataset, columns: list[str] | None, schema: pa.Schema, partitions: str | None
    ) -> None:
        self._dataset, self._columns, self._schema = dataset, columns, schema
        self._sample_bytes = sample_bytes(dataset, columns)
        self._partition_count = (
            int(partitions) if partitions else -(-len(dataset) * self._sample_bytes // _PARTITION_BYTES)
        )

    def partitions(self) -> list[InputPartition]:
        return [_Samples(samples) for samples in ranges(len(self._dataset), self._partition_count) or [range(0)]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, _Samples)
        step = max(1, _BATCH_BYTES // self._sample_bytes)
        for start in range(0, len(partition.samples), step):
            table = pa.table(self._dataset.take(partition.samples[start : start + step], self._columns))
            yield from table.cast(self._schema).to_batches()


@dataclass
class _CommitMessage(WriterCommitMessage):
    fragment: distributed.Fragment | None


class _Writer(DataSourceArrowWriter):
    """Writes one file per task, and publishes all files at the end."""

    def __init__(self, folder: str, options: dict[str, str], overwrite: bool) -> None:
        version = 1
        if _tensilo._has_manifest(folder):
            if overwrite:
                raise FileExistsError(f"{folder}: the dataset already exists; append to it, or choose another folder")
            version = _tensilo.open(folder).version + 1
        # drawn once on the driver, so that all attempts of a task write the same file
        self._job = Job(version, (1 << 62) | secrets.randbits(62), "write", None)
        self._folder = folder
        bf16 = options.get("bf16", "false").lower() == "true"
        self._options = conversion(bf16, None, None, (), None, "keep", options.get("profile", "balanced"))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        batches = (batch for batch in iterator if batch.num_rows)
        first, context = next(batches, None), TaskContext.get()
        if first is None or context is None:
            return _CommitMessage(None)
        reader = pa.RecordBatchReader.from_batches(first.schema, chain([first], batches))
        options = {**self._options, "shapes": with_open_lists(first.schema, None)}
        job = (self._folder, self._job.version, self._job.number)
        file, schema = _tensilo._write_task(job, context.partitionId(), reader, options, 1)
        return _CommitMessage(distributed.Fragment(self._job, file, schema))

    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        written = [message.fragment for message in messages if isinstance(message, _CommitMessage)]
        fragments = [fragment for fragment in written if fragment is not None]
        if fragments or not _tensilo._has_manifest(self._folder):
            distributed.commit(self._folder, fragments)

    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Does nothing: no version lists the files, so ``tensilo dataset gc`` can remove them."""
