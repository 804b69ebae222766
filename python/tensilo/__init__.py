"""tensilo: a columnar tensor store for training sets.

A file, or a folder of files, holds the tensors, texts and byte strings of a training set. Any sample can
be read by index at memory speed, and checksums cover every byte::

    import tensilo as ts

    ds = ts.open("train/")
    batch = ds.take([5, 3, 5], columns=["mel"])
    batch["mel"].torch()

``tensilo.torch`` has a dataset and a loader for PyTorch, and ``tensilo.jax`` has a loader for JAX.
``python -m tensilo`` runs the command-line program.
"""

from collections.abc import Mapping as _Mapping

from ._check import Report, verify
from ._convert import append, convert
from ._errors import ConflictError, CorruptionError, InputError, LimitError, TensiloError, UnsupportedError
from ._inspect import Drawing, draw_layout, inspect, salvage
from ._tensilo import (
    Array,
    Batch,
    BatchColumn,
    Column,
    ColumnType,
    Dataset,
    Loader,
    Schema,
    Writer,
    __version__,
    add_columns,
    binary,
    list_,
    tensor,
    utf8,
)
from ._tensilo import (
    open as open,
)

_Mapping.register(Schema)

# imported on first use
_IMPORTERS = (
    "blosc_decoder",
    "from_hdf5",
    "from_hf",
    "from_iterable",
    "from_lmdb",
    "from_mds",
    "from_torch_dataset",
)


def __getattr__(name):
    if name in _IMPORTERS:
        from . import importers

        return getattr(importers, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_IMPORTERS})


# `open` is left out, so that `import *` does not shadow the builtin
__all__ = [
    "Array",
    "Batch",
    "BatchColumn",
    "Column",
    "ColumnType",
    "ConflictError",
    "CorruptionError",
    "Dataset",
    "Drawing",
    "InputError",
    "LimitError",
    "Loader",
    "Report",
    "Schema",
    "TensiloError",
    "UnsupportedError",
    "Writer",
    "__version__",
    "add_columns",
    "append",
    "binary",
    "convert",
    "draw_layout",
    "inspect",
    "list_",
    "salvage",
    "tensor",
    "utf8",
    "verify",
]
