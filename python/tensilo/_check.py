"""Verification."""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Literal

from . import _tensilo
from ._errors import CorruptionError
from ._progress import progress_callback


class Report:
    """The findings of ``verify``.

    Attributes:
        files: for each file a dict: path, state, bytes, samples, damages; message, if the file is not
            the one of the dataset.
        damages: a dict for each finding in all files: path, kind, offset, bytes, region, column,
            samples, rule, message. The kind is "damaged"; or "uncommitted": bytes that an append has
            not committed; or "unfinished": a file whose writer has not finished.
    """

    def __init__(self, files: list[dict[str, Any]]) -> None:
        self.files = files
        self.damages = [damage for file in files for damage in file["damages"]]

    @property
    def state(self) -> Literal["ok", "unfinished", "damaged"]:
        """The verdict on all files.

        "unfinished": all samples of the last commits are intact, but a writer is at work or was
        stopped.
        """
        states = {file["state"] for file in self.files}
        return "damaged" if "damaged" in states else "unfinished" if "unfinished" in states else "ok"

    @property
    def ok(self) -> bool:
        """Whether all files are intact and finished."""
        return self.state == "ok"

    def __bool__(self) -> bool:
        return self.ok

    def raise_if_damaged(self) -> None:
        """Raises a ``CorruptionError`` of the first damage, which names how many there are.

        A file that a writer has not finished is not damaged.
        """
        if self.state != "damaged":
            return
        broken = [file for file in self.files if file["message"]]
        if broken:
            raise _error(broken[0]["message"], {"path": broken[0]["path"]})
        damages = [damage for damage in self.damages if damage["kind"] == "damaged"]
        first = damages[0]
        more = f", and {len(damages) - 1} other ranges are damaged" if len(damages) > 1 else ""
        rule = f" (rule {first['rule']})" if first["rule"] else ""
        raise _error(f"{first['path']}: {first['message']} at offset {first['offset']}{rule}{more}", first)

    def __repr__(self) -> str:
        if self.ok:
            samples = sum(file["samples"] or 0 for file in self.files)
            return f"Report(ok: {len(self.files)} files, {samples:,} samples)"
        lines = [file["message"] for file in self.files if file["message"]]
        lines += [f"{d['path']}: offset {d['offset']}, {d['bytes']} bytes: {d['message']}" for d in self.damages]
        return f"Report({self.state})\n" + "\n".join(lines[:20]) + ("\n..." if len(lines) > 20 else "")


def _error(text: str, location: dict[str, Any]) -> CorruptionError:
    error = CorruptionError(text)
    for name in ("path", "column", "samples", "offset", "rule"):
        setattr(error, name, location.get(name))
    error.add_note("tensilo.salvage saves what is intact")
    return error


def verify(
    path: str | PathLike[str],
    *,
    deep: bool = False,
    threads: int | Literal["auto"] = "auto",
    progress: bool | Callable[[str, int, int | None], object] = False,
) -> Report:
    """Checks every byte of a file, or of all files of a dataset.

    Args:
        path: a file, the folder of a dataset, or a pattern.
        deep: whether values are decoded, too.
        progress: True for a line on the standard error, or a function of phase, done and total.

    Returns:
        A ``Report``; its ``raise_if_damaged()`` raises the first damage.
    """
    with progress_callback(progress) as show:
        return Report(_tensilo._verify(path, deep=deep, threads=threads, progress=show))
