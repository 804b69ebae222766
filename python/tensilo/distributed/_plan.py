"""The plan of a conversion: which rows of which inputs each file has."""

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
    out: _Path,
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

    The same inputs and options give the same tasks. Their files are those of ``tensilo.convert`` with these
    options, byte for byte.

    Args:
        inputs: a path, a folder, a pattern, also in an object store, or a list of these.
        out: the folder of the dataset, or a prefix of an object store.
        shard_bytes: the raw bytes of a file, such as "1GiB". Each is a task.
        threads: how many read the inputs now.

    Other options are those of ``tensilo.convert``.

    Raises:
        FileExistsError: a dataset is there.
        InputError: an input is malformed.
        ValueError: the inputs have no samples.

    Cost: as far as types do not tell the shapes of samples, reading the columns whose shapes are found, and
    those whose samples differ in length. Declare ``shapes`` to save the first. Columns of scalars, and of
    tensors of one stated shape, are not read.
    """
    options = conversion(bf16, casts, columns, skip, shapes, null_elements, profile)
    folder = absolute(out)
    with progress_callback(progress) as show:
        planned = _tensilo._plan(all_absolute(inputs), folder, options, shard_bytes, threads, show)
    if not planned[2]:
        raise ValueError("the inputs have no samples, of which a dataset could be made")
    return _tasks(planned, folder, 1, "convert", profile, null_elements, skip_extra_columns=True)


def plan_append(
    out: _Path,
    inputs: Any,
    *,
    shard_bytes: int | str = "1GiB",
    skip_extra_columns: bool = False,
    null_elements: Literal["keep", "refuse", "nan", "zero"] = "keep",
    profile: str | Mapping[str, str] = "balanced",
    threads: int | Literal["auto"] = "auto",
    progress: _Progress = False,
) -> list[Task]:
    """Plans files whose samples the next version of a dataset has after the others, and writes nothing.

    They are those of ``tensilo.append`` with these options. There are none if the inputs have no samples.
    If another writer publishes a version meanwhile, ``commit`` raises ``ConflictError``: plan again.
    """
    folder = absolute(out)
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
    """Returns the tasks of a plan, each with the inputs that it reads."""
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
    """Returns a number of at least 2^32 that two jobs share only if their files are the same.

    The ids of files depend on schema, options, and metadata of inputs. Values may change without these: so do
    the times of files then, or the tags of objects.
    """
    changed = [_version(path) for path, _, _ in inputs]
    text = repr((_tensilo.__version__, version, nulls, inputs, changed, shards))
    digest = hashlib.sha256(text.encode("utf-8", "surrogateescape")).digest()
    return (1 << 62) | int.from_bytes(digest[:8], "little") >> 2


def _version(path: str) -> Any:
    """Returns what changes when an input is changed."""
    if "://" in path:
        return _tensilo._object_version(path)
    found = os.stat(path)
    return found.st_size, found.st_mtime_ns
