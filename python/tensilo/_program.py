"""What the command line program does in a process of its own: salvage, inspection, drawings."""

from __future__ import annotations

import errno
import os
import sys
from os import PathLike
from typing import Any

from ._errors import CorruptionError, TensiloError

_DAMAGED, _USAGE, _IO = 1, 2, 3

_PACKAGES = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_PROGRAM = "import sys; sys.path.append(sys.argv.pop(1)); from tensilo.__main__ import main; main()"


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
    return _of_json(_run("inspect", "--json", _path(path)))


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
    outputs = [] if output is None else ["--output", os.fspath(output)]
    return _of_json(_run("salvage", "--json", *outputs, _path(path), may_be_damaged=True))


def map(path: str | PathLike[str], *, width: int = 1200, verify: bool = False) -> Drawing:
    """Returns a drawing of the chunks of a file to scale, and of their damage if ``verify``."""
    checks = ["--verify"] if verify else []
    return Drawing(_run("map", "--svg", "-", "--width", str(width), *checks, _path(path), may_be_damaged=True))


def _path(path: str | PathLike[str]) -> str:
    path = os.fsdecode(path)
    # a name that begins with a dash is no option
    return os.path.join(os.curdir, path) if path.startswith("-") else path


def _of_json(text: str) -> dict[str, Any]:
    import json  # not when the package is imported, which should take no time

    return json.loads(text)


def _run(*arguments: str, may_be_damaged: bool = False) -> str:
    import subprocess  # as above

    # -P: what is in the folder at work is not imported
    command = [sys.executable, "-P", "-c", _PROGRAM, _PACKAGES, "--quiet", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode == 0 or (done.returncode == _DAMAGED and may_be_damaged):
        return done.stdout
    if "Traceback (most recent call last)" in done.stderr:
        raise TensiloError(done.stderr)
    text = done.stderr.strip().removeprefix("error: ")
    if not os.path.exists(arguments[-1]):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), arguments[-1])
    kinds = {_DAMAGED: CorruptionError, _USAGE: ValueError, _IO: OSError}
    raise kinds.get(done.returncode, TensiloError)(text)
