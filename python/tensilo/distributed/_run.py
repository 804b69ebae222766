"""One file of a dataset, written by any process."""

from __future__ import annotations

from typing import Literal

from .. import _tensilo
from ._task import Fragment, Task


def run(task: Task, *, threads: int | Literal["auto"] = 1) -> Fragment:
    """Writes the file of a task, unless it exists, and returns what the manifest will say of it.

    The file appears under its name when it is complete, and nobody reads it before ``commit``. A task gives
    the same bytes in any process, with any number of threads: repeat it after a failure, or run it twice at
    the same time, and there is one file.

    Args:
        threads: how many encode.

    Raises:
        InputError: an input is malformed, or was replaced since it was planned.
    """
    file = _tensilo._run_task(
        (task.folder, task.job.version, task.job.number),
        task.number,
        list(task.inputs),
        task.rows,
        task.schema,
        task.file_id,
        task.null_elements,
        task.profile,
        threads,
        task.skip_extra_columns,
    )
    return Fragment(task.job, file, task.schema)
