"""Importers for containers that only Python libraries read.

Each importer reads a batch at a time, writes it with ``tensilo.Writer``, and opens the result. The output appears when
it is complete; if a sample cannot be read or stored, there is no output. For Parquet, Arrow and other files, use
``tensilo.convert``.
"""

from .blosc_decoder import blosc_decoder
from .hdf5 import from_hdf5
from .hf import from_hf
from .iterable import from_iterable
from .lmdb import from_lmdb
from .mds import from_mds
from .torch_dataset import from_torch_dataset

__all__ = [
    "blosc_decoder",
    "from_hdf5",
    "from_hf",
    "from_iterable",
    "from_lmdb",
    "from_mds",
    "from_torch_dataset",
]
