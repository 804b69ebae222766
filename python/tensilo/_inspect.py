"""What files hold, what damaged ones have left, and where in a file that is: as dicts and drawings."""

from __future__ import annotations

import errno
import os
from os import PathLike
from typing import Any

from . import _tensilo


class Drawing:
    """A drawing of a file, as SVG, which notebooks show. ``str(drawing)`` is its text."""

    def __init__(self, svg: str) -> None:
        self._svg = svg

    def __str__(self) -> str:
        return self._svg

    def __repr__(self) -> str:
        return f"Drawing({len(self._svg):,} characters of SVG)"

    def _repr_svg_(self) -> str:
        return self._svg

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the drawing to a file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self._svg)


def inspect(path: str | PathLike[str]) -> dict[str, Any]:
    """Returns the columns, sizes, encodings and metadata of a file or a dataset, as a dict."""
    return _tensilo._inspect(path)


def salvage(path: str | PathLike[str], output: str | PathLike[str] | None = None) -> dict[str, Any]:
    """Finds what is intact in a damaged file or dataset, and writes it to a new one.

    Args:
        path: the file, or the folder of the dataset.
        output: the new file or folder, in which lost samples are null; None only looks.

    Returns:
        A dict of the losses, and of the samples that nothing confirms: ``"unconfirmed"`` of each
        column. An older file of the same columns may have left these if index or footer are damaged,
        too. The new file names them in the metadata ``tensilo.unconfirmed`` of its columns.
    """
    if output is not None and os.path.lexists(output):
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), os.fspath(output))
    return _tensilo._salvage(path, output)


def draw_layout(path: str | PathLike[str], *, width: int = 1200, verify: bool = False) -> Drawing:
    """Returns a drawing of the chunks of a file to scale, and of their damage if ``verify``.

    Args:
        path: a file, or the folder of a dataset, whose files are drawn as bars.
        width: of the drawing, 600 to 10000 pixels.
        verify: whether every byte of the file is checked first, and damage is crossed out.
    """
    return Drawing(_tensilo._draw_layout(path, width, verify))
