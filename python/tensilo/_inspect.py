"""``inspect``, ``salvage`` and ``draw_layout``: describe files, recover damaged files, and draw their layout."""

from __future__ import annotations

import errno
import os
from os import PathLike
from typing import Any

from . import _tensilo


class Drawing:
    """An SVG drawing of a file. Notebooks display it, and ``str(drawing)`` returns the SVG text."""

    def __init__(self, svg: str) -> None:
        self._svg = svg

    def __str__(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return f"Drawing({len(self._svg):,} characters of SVG)"

    def _repr_svg_(self) -> str:
        return self._svg

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the SVG to a file.

        Args:
            path: the file, which is replaced if it exists.
        """
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._svg)


def inspect(path: str | PathLike[str]) -> dict[str, Any]:
    """Returns the columns, sizes, encodings and metadata of a file or a dataset as a dict.

    Args:
        path: a file, or the folder of a dataset.
    """
    return _tensilo._inspect(path)


def salvage(path: str | PathLike[str], output: str | PathLike[str] | None = None) -> dict[str, Any]:
    """Recovers the intact samples of a damaged file or dataset, and writes them to a new one.

    Args:
        path: the file, or the folder of the dataset.
        output: the new file or folder, in which lost samples are null. Default: None, which
            only reports the losses.

    Returns:
        A dict that describes the losses. The entry ``"unconfirmed"`` of a column lists recovered samples
        whose origin could not be confirmed: if the index or the footer is damaged, they may come from an
        older file with the same columns. The new file also lists them, in the metadata entry
        ``tensilo.unconfirmed`` of each column.
    """
    if output is not None and os.path.lexists(output):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(output))
    return _tensilo._salvage(path, output)


def draw_layout(path: str | PathLike[str], *, width: int = 1200, verify: bool = False) -> Drawing:
    """Draws the chunks of a file to scale.

    Args:
        path: a file, or the folder of a dataset. The files of a dataset are drawn as bars.
        width: the width of the drawing in pixels, 600 to 10,000. Default: 1200.
        verify: whether to verify every byte of the file first, and to cross out damage. Default: False.
    """
    return Drawing(_tensilo._draw_layout(path, width, verify))
