"""``plan`` and ``plan_append``: assign the rows of the inputs to files.

A plan is deterministic: the same inputs and options give the same tasks, file ids and job number. So a failed job can
be planned again, and continues with the files that already exist. The job number depends on the versions of the inputs,
so files from changed inputs never mix with the files of an older job.
"""

from __future__ import annotations

import hashlib
import os
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from os import PathLike
from typing import Any, Literal

from .. import _tensilo
from .._convert import conversion
from .._progress import progress_callback
from ._paths import absolute, all_absolute
from ._task import Job, Task

_Path = str | PathLike[str]
_Progress = bool | Callable[[str, int, int | None], object]
_Plan = tuple[list[tuple[str, int, bytes]], _tensilo.Schema, list[tuple[int, int, bytes]]]


def plan(
    inputs: Any,
    output: _Path,
    *,
    shard_bytes: int | str = "1GiB",
    bf16: bool = False,
    casts: Mapping[str, Any] | None = None,
    columns: str | Sequence[str] | None = None,
    skip: str | Sequence[str] = (),
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    null_elements: Literal["keep", "refuse", "nan", "zero"] = "keep",
    profile: str | Mapping[str, str] = "balanced",
    threads: int | Literal["auto"] = "auto",
    progress: _Progress = False,
) -> list[Task]:
    """Plans the conversion of files to a new dataset, and writes nothing.

    The same inputs and options give the same tasks. Their files are equal, byte for byte, to the files that
    ``tensilo.convert`` writes with these options.

    Args:
        inputs: a path, a folder or a pattern, each local or in an object store, or a list of these.
        output: the folder of the dataset, or a prefix of an object store.
        shard_bytes: the raw size of a file: a number of bytes, or a string such as "1GiB". A task writes one file.
            Default: "1GiB".
        bf16, casts, columns, skip, shapes, null_elements, profile, progress: see ``tensilo.convert``.
        threads: the number of threads that read the inputs. Default: "auto", all CPUs.

    Returns:
        The tasks, which can be sent to other processes.

    Raises:
        FileExistsError: the dataset exists.
        InputError: an input is malformed.
        ValueError: the inputs have no samples.

    Cost: reads the columns whose shapes must be found (declare ``shapes`` to avoid this) and the columns whose samples
    differ in length. Columns of scalars, and of tensors with a declared fixed shape, are not read.
    """
    options = conversion(bf16, casts, columns, skip, shapes, null_elements, profile)
    folder = absolute(output)
    with progress_callback(progress) as show:
        planned = _tensilo._plan(all_absolute(inputs), folder, options, shard_bytes, threads, show)
    if not planned[2]:
        raise ValueError("the inputs have no samples, so there is no dataset to create")
    return _tasks(planned, folder, 1, "convert", profile, null_elements, skip_extra_columns=True)


def plan_append(
    output: _Path,
    inputs: Any,
    *,
    shard_bytes: int | str = "1GiB",
    skip_extra_columns: bool = False,
    null_elements: Literal["keep", "refuse", "nan", "zero"] = "keep",
    profile: str | Mapping[str, str] = "balanced",
    threads: int | Literal["auto"] = "auto",
    progress: _Progress = False,
) -> list[Task]:
    """Plans the files that append samples to a dataset in its next version, and writes nothing.

    The files are equal to the files that ``tensilo.append`` writes with these options. If another writer publishes a
    version in the meantime, ``commit`` raises ``ConflictError``: plan again.

    Args:
        output: the folder of the dataset, or a prefix of an object store.
        inputs: a path, a folder or a pattern, each local or in an object store, or a list of these.
        shard_bytes: the raw size of a file: a number of bytes, or a string such as "1GiB". A task writes one file.
            Default: "1GiB".
        skip_extra_columns, null_elements, profile, progress: see ``tensilo.append``.
        threads: the number of threads that read the inputs. Default: "auto", all CPUs.

    Returns:
        The tasks. The list is empty if the inputs have no samples.
    """
    folder = absolute(output)
    with progress_callback(progress) as show:
        planned, version = _tensilo._plan_append(
            folder, all_absolute(inputs), skip_extra_columns, null_elements, profile, shard_bytes, threads, show
        )
    return _tasks(planned, folder, version, "append", profile, null_elements, skip_extra_columns)


def _tasks(
    planned: _Plan,
    folder: str,
    version: int,
    change: str,
    profile: str | Mapping[str, str],
    null_elements: str,
    skip_extra_columns: bool,
) -> list[Task]:
    """Returns the tasks of a plan, each with only the inputs that it reads."""
    inputs, schema, shards = planned
    number = _job_number(inputs, shards, version, null_elements)
    job = Job(version, number, change, len(shards))
    ends = list(accumulate(rows for _, rows, _ in inputs))
    tasks = []
    for i, (start, end, file_id) in enumerate(shards):
        first = bisect_right(ends, start)
        last = bisect_right(ends, end - 1)
        before = ends[first - 1] if first else 0
        own = tuple(inputs[first : last + 1])
        rows = (start - before, end - before)
        tasks.append(Task(folder, job, i, own, rows, file_id, schema, profile, null_elements, skip_extra_columns))
    return tasks


def _job_number(
    inputs: Sequence[tuple[str, int, bytes]], shards: Sequence[tuple[int, int, bytes]], version: int, nulls: str
) -> int:
    """Returns the number of a job. Two jobs have the same number only if their files are the same.

    File ids depend on the schema, the options and the metadata of the inputs. The values of an input can change while
    all of these stay the same, so the number also depends on the sizes and modification times of files and on the
    entity tags of objects. Numbers below 2^32 are reserved, so the number is larger.
    """
    changed = [_version(path) for path, _, _ in inputs]
    text = repr((_tensilo.__version__, version, nulls, inputs, changed, shards))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return (1 << 62) | int.from_bytes(digest[:8], "little") >> 2


def _version(path: str) -> Any:
    """Returns a value that changes whenever an input changes."""
    if "://" in path:
        return _tensilo._object_version(path)
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
