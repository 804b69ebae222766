"""Importers for sources that ``tensilo.convert`` does not read, such as HDF5, LMDB and PyTorch datasets.

Each importer reads and writes one batch at a time, and opens the result. The output appears only when it is complete.
If a sample cannot be read or stored, there is no output. For Parquet, Arrow and other files, use ``tensilo.convert``.
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
