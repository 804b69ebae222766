"""``Job``, ``Task`` and ``Fragment``: the values that the processes of a distributed conversion exchange."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .. import _tensilo

# path, rows and digest
PlannedInput = tuple[str, int, bytes]
# number, samples, bytes, footer offset, content id
JobFile = tuple[int, int, int, int, bytes]


@dataclass(frozen=True)
class Job:
    """A job, which creates one version of a dataset. The folder of its files is named after its number."""

    version: int
    number: int
    change: str
    count: int | None
    """The number of files, or None if it is not known in advance."""


@dataclass(frozen=True)
class Task:
    """One data file to write: its rows and its options. Any process can write it with ``run``."""

    folder: str
    job: Job
    number: int
    inputs: tuple[PlannedInput, ...] = field(repr=False)
    """The inputs that contain at least one of its rows."""
    rows: tuple[int, int]
    """The start and end of its rows, counted from the first of ``inputs``."""
    file_id: bytes = field(repr=False)
    schema: _tensilo.Schema = field(repr=False)
    profile: str | Mapping[str, str] = field(hash=False)
    null_elements: str
    skip_extra_columns: bool


@dataclass(frozen=True)
class Fragment:
    """A written file that no version lists yet, with everything that the manifest will record about it."""

    job: Job
    file: JobFile
    schema: _tensilo.Schema = field(repr=False)

    @property
    def number(self) -> int:
        """The number of the file. Its samples follow the samples of files with lower numbers."""
        return self.file[0]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.file[1]

    @property
    def stored_bytes(self) -> int:
        """The length of the file, in bytes."""
        return self.file[2]
