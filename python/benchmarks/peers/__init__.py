"""The peers. Each module defines the rows of one library in ``ROWS``."""

import importlib

MODULES = [
    "tensilo",
    "memmap",
    "lmdb_blosc",
    "hdf5",
    "hf_datasets",
    "webdataset",
    "streaming",
    "litdata",
    "grain",
    "lance",
    "zarr",
]


def rows():
    """Returns all rows by name. Libraries are imported only when a row writes or loads."""
    found = [row for name in MODULES for row in importlib.import_module(f"peers.{name}").ROWS]
    return {row.name: row for row in found}
