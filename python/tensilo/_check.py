"""``verify`` and its report.

The extension checks the bytes and returns one dict per file; ``Report`` summarizes these dicts. An unfinished file
is not damaged: its last commit is intact, but its writer is still active or was interrupted.
"""

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
        files (list of dict): one dict per file, with the keys path, state, file_bytes, sample_count,
            findings and message. If the file cannot be opened or does not belong to the dataset, the message says why;
            otherwise it is None.
        findings (list of dict): the findings of all files, one dict each, with the keys path, kind, offset,
            bytes, region, column, samples, rule and message. The kind is "damaged", "uncommitted" (bytes
            that an append did not commit) or "unfinished" (the file ends with a commit, but its writer has
            not declared it complete).
    """

    def __init__(self, files: list[dict[str, Any]]) -> None:
        self.files = files
        self.findings = [finding for file in files for finding in file["findings"]]

    @property
    def state(self) -> Literal["ok", "unfinished", "damaged"]:
        """The combined state of all files.

        "unfinished" means that all committed samples are intact, but a writer is still active or was
        interrupted.
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
        """Raises a ``CorruptionError`` if a file is damaged.

        The error describes the first damaged range and says how many others there are. If a file cannot be opened or
        does not belong to the dataset, the error describes that file instead. Unfinished files are not errors.
        """
        if self.state != "damaged":
            return
        broken = [file for file in self.files if file["message"]]
        if broken:
            raise _error(broken[0]["message"], {"path": broken[0]["path"]})
        findings = [finding for finding in self.findings if finding["kind"] == "damaged"]
        first = findings[0]
        more = f", and {len(findings) - 1} more damaged ranges" if len(findings) > 1 else ""
        rule = f" (rule {first['rule']})" if first["rule"] else ""
        raise _error(f"{first['path']}: {first['message']} at offset {first['offset']}{rule}{more}", first)

    def __repr__(self) -> str:
        if self.ok:
            samples = sum(file["sample_count"] or 0 for file in self.files)
            return f"Report(ok: {len(self.files)} files, {samples:,} samples)"
        lines = [file["message"] for file in self.files if file["message"]]
        lines += [f"{d['path']}: offset {d['offset']}, {d['bytes']} bytes: {d['message']}" for d in self.findings]
        return f"Report({self.state})\n" + "\n".join(lines[:20]) + ("\n..." if len(lines) > 20 else "")


def _error(text: str, location: dict[str, Any]) -> CorruptionError:
    error = CorruptionError(text)
    for name in ("path", "column", "samples", "offset", "rule"):
        setattr(error, name, location.get(name))
    error.add_note("tensilo.salvage recovers the intact samples")
    return error


def verify(
    path: str | PathLike[str],
    *,
    deep: bool = False,
    threads: int | Literal["auto"] = "auto",
    progress: bool | Callable[[str, int, int | None], object] = False,
) -> Report:
    """Verifies every byte of a file, or of all files of a dataset.

    Args:
        path: a file, the folder of a dataset, or a pattern.
        deep: whether to also decode all values. Default: False.
        threads: the number of threads. Default: "auto", all CPUs.
        progress: True to show progress on standard error, or a function that is called with
            ``(phase, done, total)``. Default: False.

    Returns:
        A ``Report``. Its ``raise_if_damaged()`` raises an error if anything is damaged.
    """
    with progress_callback(progress) as show:
        return Report(_tensilo._verify(path, deep=deep, threads=threads, progress=show))
