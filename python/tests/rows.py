"""Rows shared by the tests of distributed conversion."""

import pathlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ROWS = 900
OPTIONS = {"shard_bytes": "4KiB", "bf16": True}
AT = pa.struct({"x": pa.int64(), "y": pa.float64()})


def table(start, stop):
    """Returns rows of many types and different raw sizes."""
    numbers = range(start, stop)
    rng = np.random.default_rng(start)
    return pa.table(
        {
            "emb": pa.array([rng.normal(size=12).astype(np.float32) for _ in numbers], pa.list_(pa.float32())),
            "ragged": pa.array([[float(i)] * (i % 7) for i in numbers], pa.list_(pa.float32())),
            "text": pa.array([None if i % 11 == 0 else f"text {i}" * (i % 5) for i in numbers], pa.string()),
            "words": pa.array([[f"w{k}" for k in range(i % 4)] for i in numbers], pa.list_(pa.string())),
            "at": pa.array([{"x": i, "y": None if i % 3 else i / 2} for i in numbers], AT),
            "label": pa.array(list(numbers), pa.int64()),
        }
    )


def write_inputs(folder):
    """Writes files of several row groups, whose boundaries do not match the data files."""
    for number, (start, stop) in enumerate([(0, 250), (250, 251), (251, 600), (600, ROWS)]):
        pq.write_table(table(start, stop), folder / f"{number}.parquet", row_group_size=64)
    return folder


def content(folder):
    """Returns the bytes of all files by path, except for leftovers of killed processes."""
    files = sorted(path for path in pathlib.Path(folder).rglob("*") if path.is_file() and path.suffix != ".tmp")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}
