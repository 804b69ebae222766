"""Datasets with Dask: conversion, and frames.

Works with any scheduler of Dask, such as that of ``dask.distributed``, whose workers see inputs and outputs
under the same paths.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from typing import Any

import dask
import dask.dataframe
import pandas as pd
import pyarrow as pa

from . import _tensilo, distributed
from ._ranges import ranges, sample_bytes
from .distributed._paths import opened

__all__ = ["convert", "read"]

# about the memory of a partition
_PARTITION_BYTES = 128 << 20


def convert(inputs: Any, out: str | PathLike[str], **options: Any) -> _tensilo.Dataset:
    """Converts files to a new dataset, each of whose files is a task of Dask, and opens it.

    Args and errors are those of ``tensilo.distributed.plan``. Tasks may be repeated.
    """
    tasks = distributed.plan(inputs, out, **options)
    run = dask.delayed(distributed.run)
    fragments = dask.compute(*[run(task, dask_key_name=_name(task)) for task in tasks])
    distributed.commit(out, fragments)
    return _tensilo.open(out)


def read(
    source: Any, columns: str | Sequence[str] | None = None, *, partitions: int | None = None
) -> dask.dataframe.DataFrame:
    """Returns a frame of Dask with the samples of a dataset, whose index is their numbers.

    Columns are those that ``pandas.DataFrame.from_arrow`` makes of a ``Batch``, with types of Arrow.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes. Tasks read the version that it is now.
        columns: the names of the columns; all by default.
        partitions: the number of partitions; by default they have about 128 MiB.
    """
    dataset = opened(source)
    names = [columns] if isinstance(columns, str) else columns
    if partitions is None:
        partitions = -(-len(dataset) * sample_bytes(dataset, names) // _PARTITION_BYTES)
    sample_ranges = ranges(len(dataset), partitions) or [range(0)]
    divisions = [samples.start for samples in sample_ranges] + [max(0, len(dataset) - 1)]
    return dask.dataframe.from_map(
        _frame, sample_ranges, dataset=dataset, columns=names, meta=_frame(range(0), dataset, names), divisions=divisions
    )


def _frame(samples: range, dataset: _tensilo.Dataset, columns: Sequence[str] | None) -> pd.DataFrame:
    table = pa.table(dataset.take(samples, columns))
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame.set_axis(pd.RangeIndex(samples.start, samples.stop, name="sample"))


def _name(task: distributed.Task) -> str:
    return f"tensilo-{task.job.number}-{task.number}"
