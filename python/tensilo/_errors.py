"""The exceptions of the package.

Arguments that do not fit are ``ValueError``, ``TypeError``, ``IndexError`` and ``KeyError``, and what the
system refuses is the ``OSError`` that fits.
"""


class TensiloError(Exception):
    """An error of a file or a dataset.

    Attributes:
        path: the file, or None.
        column: the name of the column, or None.
        samples: ``(start, end)`` of the samples, or None.
        offset: the offset in the file in bytes, or None.
        rule: the rule of the specification that is broken, such as "R-2.6", or None.

    A note says what to do next, if there is something to do.
    """

    path: str | None = None
    column: str | None = None
    samples: tuple[int, int] | None = None
    offset: int | None = None
    rule: str | None = None


class CorruptionError(TensiloError):
    """A file is damaged, incomplete, or not a tensilo file."""


class UnsupportedError(TensiloError):
    """A file needs a newer version of this package."""


class ConflictError(TensiloError):
    """Another writer has published a version meanwhile: open the dataset again, and repeat."""


class LimitError(TensiloError, ValueError):
    """A limit would be exceeded: of the format, or of the memory of this machine."""


class InputError(TensiloError, ValueError):
    """An input of a conversion is malformed, or has values that cannot be stored."""
