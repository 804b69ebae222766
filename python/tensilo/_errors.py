"""The exceptions of the package.

Invalid arguments raise ``ValueError``, ``TypeError``, ``IndexError`` or ``KeyError``, and system errors raise the
matching subclass of ``OSError``.
"""


class TensiloError(Exception):
    """The base class of errors about files and datasets.

    Attributes:
        path (str or None): the file.
        column (str or None): the name of the column.
        samples (tuple or None): ``(start, end)`` of the affected samples.
        offset (int or None): the offset in the file, in bytes.
        rule (str or None): the broken rule of the specification, such as "R-2.6".

    If there is something that you can do about the error, a note on the exception says what.
    """

    path: str | None = None
    column: str | None = None
    samples: tuple[int, int] | None = None
    offset: int | None = None
    rule: str | None = None


class CorruptionError(TensiloError):
    """A file is damaged, incomplete, or not a tensilo file."""


class UnsupportedError(TensiloError):
    """A file needs a different version or build of this package."""


class ConflictError(TensiloError):
    """Another writer has published a version in the meantime: open the dataset again and retry."""


class LimitError(TensiloError, ValueError):
    """The operation would exceed a limit of the format, or the memory of this machine."""


class InputError(TensiloError, ValueError):
    """An input of a conversion is malformed, or has values that cannot be stored."""
