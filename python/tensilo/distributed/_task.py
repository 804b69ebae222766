"""What travels between the processes of a conversion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .. import _tensilo

# path, rows and digest
PlannedInput = tuple[str, int, bytes]
# number, samples, raw bytes, bytes, offset of the footer, content id
JobFile = tuple[int, int, int, int, int, bytes]


@dataclass(frozen=True)
class Job:
    """The version that a job makes. Its number names the folder of its files."""

    version: int
    number: int
    change: str
    count: int | None
    """The number of its files, if it is known beforehand."""


@dataclass(frozen=True)
class Task:
    """The rows of one file of a dataset, and how it is written. ``run`` writes it, in any process."""

    folder: str
    job: Job
    number: int
    inputs: tuple[PlannedInput, ...] = field(repr=False)
    """The inputs that have some of its rows."""
    rows: tuple[int, int]
    """Its rows, counted from the first of ``inputs``."""
    file_id: bytes = field(repr=False)
    schema: _tensilo.Schema = field(repr=False)
    profile: str | Mapping[str, str] = field(hash=False)
    null_elements: str
    skip_extra_columns: bool


@dataclass(frozen=True)
class Fragment:
    """A file that was written, and is in no version yet: all that the manifest will say of it."""

    job: Job
    file: JobFile
    schema: _tensilo.Schema = field(repr=False)

    @property
    def number(self) -> int:
        """The number of the file: its samples follow those of lower numbers."""
        return self.file[0]

    @property
    def samples(self) -> int:
        """The number of samples."""
        return self.file[1]

    @property
    def stored_bytes(self) -> int:
        """The length of the file."""
        return self.file[3]
