"""Makes paths absolute, so that they mean the same in every process."""

from __future__ import annotations

import os
from os import PathLike
from typing import Any

from .. import _tensilo


def absolute(path: str | PathLike[str]) -> str:
    """Returns a path that does not depend on the working directory. URLs are unchanged."""
    path = os.fsdecode(path)
    return path if "://" in path else os.path.abspath(path)


def all_absolute(inputs: Any) -> list[str]:
    """Converts a path or a list of paths to a list of absolute paths."""
    if isinstance(inputs, (str, PathLike)):
        return [absolute(inputs)]
    if hasattr(inputs, "__arrow_c_stream__"):
        raise TypeError("tasks need files that all processes see: write the table to a Parquet file first")
    return [absolute(path) for path in inputs]


def opened(source: Any) -> _tensilo.Dataset:
    """Returns ``source`` if it is a dataset. Otherwise opens it by absolute paths, which other processes can use."""
    if isinstance(source, _tensilo.Dataset):
        return source
    return _tensilo.open(absolute(source) if isinstance(source, (str, PathLike)) else all_absolute(source))
