"""Converts files to datasets, and reads datasets as dataframes, with Dask.

It works with any Dask scheduler, such as ``dask.distributed``. All workers must see inputs and outputs under the same
paths.
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

# the approximate size of a partition in memory
_PARTITION_BYTES = 128 << 20


def convert(inputs: Any, output: str | PathLike[str], **options: Any) -> _tensilo.Dataset:
    """Converts files to a new dataset, with one Dask task per data file, and opens it.

    Dask can repeat tasks: a repeated task writes the same file.

    Args:
        inputs, output, **options: the arguments of ``tensilo.distributed.plan``, which also lists the errors.
    """
    tasks = distributed.plan(inputs, output, **options)
    run = dask.delayed(distributed.run)
    fragments = dask.compute(*[run(task, dask_key_name=_name(task)) for task in tasks])
    distributed.commit(output, fragments)
    return _tensilo.open(output)


def read(
    source: Any, columns: str | Sequence[str] | None = None, *, partitions: int | None = None
) -> dask.dataframe.DataFrame:
    """Returns a Dask dataframe with the samples of a dataset. Its index is the sample index.

    Its columns are the ones that ``pandas.DataFrame.from_arrow`` makes from a ``Batch``, with Arrow dtypes.

    Args:
        source: a ``tensilo.Dataset``, or a source for ``tensilo.open``. Tasks read its current version.
        columns: the columns to read. Default: all columns.
        partitions: the number of partitions. Default: chosen so that a partition takes about 128 MiB.
    """
    dataset = opened(source)
    names = [columns] if isinstance(columns, str) else columns
    if partitions is None:
        partitions = -(-len(dataset) * sample_bytes(dataset, names) // _PARTITION_BYTES)
    sample_ranges = ranges(len(dataset), partitions) or [range(0)]
    divisions = [samples.start for samples in sample_ranges] + [max(0, len(dataset) - 1)]
    return dask.dataframe.from_map(
        _frame,
        sample_ranges,
        dataset=dataset,
        columns=names,
        meta=_frame(range(0), dataset, names),
        divisions=divisions,
    )


def _frame(samples: range, dataset: _tensilo.Dataset, columns: Sequence[str] | None) -> pd.DataFrame:
    table = pa.table(dataset.take(samples, columns))
    frame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return frame.set_axis(pd.RangeIndex(samples.start, samples.stop, name="sample"))


def _name(task: distributed.Task) -> str:
    return f"tensilo-{task.job.number}-{task.number}"
