"""Divides samples into ranges for the read tasks of Ray, Dask and Spark."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pyarrow as pa

from . import _tensilo

# the number of samples from which the size of a sample is estimated
_PROBE_SAMPLES = 16


def ranges(count: int, range_count: int) -> list[range]:
    """Divides samples into at most ``range_count`` ranges. Their lengths differ by at most 1."""
    range_count = max(1, min(range_count, count))
    ends = [count * i // range_count for i in range(range_count + 1)]
    return [range(start, end) for start, end in pairwise(ends) if start < end]


def sample_bytes(dataset: _tensilo.Dataset, columns: Sequence[str] | None) -> int:
    """Estimates how many bytes a sample takes in Arrow. The result is at least 1."""
    count = len(dataset)
    samples = sorted({count * i // _PROBE_SAMPLES for i in range(_PROBE_SAMPLES)}) if count else []
    nbytes = pa.table(dataset.take(samples, columns)).nbytes
    return max(1, nbytes // max(1, len(samples)))
