"""Feeds batches of a loader to NVIDIA DALI pipelines.

    @pipeline_def(batch_size=256, num_threads=4, device_id=0)
    def pipeline(loader):
        source = tensilo.dali.Source(loader, ["image", "label"])
        image, label = fn.external_source(source, num_outputs=2, cycle="raise")
        return fn.decoders.image(image, device="mixed"), label

Importing this module does not need DALI.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from . import _tensilo

__all__ = ["Source"]


class Source:
    """Delivers the batches of a loader to ``fn.external_source`` in batch mode.

    Each pass is an epoch of the loader. A batch is a list with one entry per column: an array if the samples
    have a fixed shape, otherwise a list of arrays. Text and bytes, such as encoded images, are arrays of
    ``uint8``; bf16 becomes float32.

    Args:
        loader: the loader. Its batch size must not exceed the batch size of the pipeline.
        columns: the names of the columns, in the order of the outputs.

    Raises:
        ValueError: a sample is null, or a column has a type that DALI does not support.
    """

    def __init__(self, loader: _tensilo.Loader, columns: str | Sequence[str]) -> None:
        self._loader = loader
        self._columns = [columns] if isinstance(columns, str) else list(columns)
        self._batches: Iterator[_tensilo.Batch] | None = None

    def __iter__(self) -> Source:
        self._batches = None  # the epoch starts with the first batch, so an unused iterator does not skip an epoch
        return self

    def __next__(self) -> list[Any]:
        if self._batches is None:
            self._batches = iter(self._loader)
        batch = next(self._batches)
        return [_samples(batch[name]) for name in self._columns]


def _samples(column: _tensilo.BatchColumn) -> Any:
    if column.null_count:
        raise ValueError(f"column {column.name!r} has nulls, which DALI does not support: replace or skip them first")
    if column.levels:
        raise ValueError(f"column {column.name!r} has lists, which DALI does not support")
    if column.dtype in ("utf8", "bytes"):
        return [_array_of_text(column[i]) for i in range(len(column))]
    dtype = np.float32 if column.dtype == "bf16" else None
    if None in column.shape:
        return [np.asarray(column[i], dtype) for i in range(len(column))]
    return column.numpy(dtype)


def _array_of_text(text: str | bytes) -> Any:
    return np.frombuffer(text.encode() if isinstance(text, str) else text, np.uint8)
