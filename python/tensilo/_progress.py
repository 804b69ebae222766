"""Reports the progress of long operations: on standard error, or to a function of the caller."""

from __future__ import annotations

import io
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_callback(
    progress: bool | Callable[[str, int, int | None], object] | None,
) -> Iterator[Callable[[str, int, int | None], object] | None]:
    """Yields the function to call with ``(phase, done, total)``, or None to report nothing.

    ``progress`` is such a function, or True to print a line to standard error.
    """
    if progress is True:
        line = _Line()
        try:
            yield line
        finally:
            line.end()
    else:
        yield progress or None


class _Line:
    """Prints progress to standard error.

    On a terminal, it updates one line every 0.1 s. Otherwise, it prints a new line every second.
    """

    def __init__(self) -> None:
        # sys.stderr is None in programs without a console
        self._stream = sys.stderr or io.StringIO()
        self._is_terminal = self._stream.isatty()
        self._next = 0.0
        self._width = 0

    def __call__(self, phase: str, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + (0.1 if self._is_terminal else 1.0)
        text = f"{phase}: {done:,}" + (f" of {total:,} ({done / total:.0%})" if total else "")
        if self._is_terminal:
            self._stream.write("\r" + text.ljust(self._width))
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def end(self) -> None:
        """Ends the line on a terminal."""
        if self._width:
            self._stream.write("\n")
            self._stream.flush()
