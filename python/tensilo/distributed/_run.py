"""``run``: writes one file of a plan, in any process."""

from __future__ import annotations

from typing import Literal

from .. import _tensilo
from ._task import Fragment, Task


def run(task: Task, *, threads: int | Literal["auto"] = 1) -> Fragment:
    """Writes the file of a task unless it exists, and returns its entry for the manifest.

    The file appears under its name when it is complete, and no reader opens it before ``commit``. A task writes the
    same bytes in any process and with any number of threads. So even if it is repeated after a failure, or runs twice
    at the same time, there is only one file.

    Args:
        task: a task of ``plan`` or ``plan_append``.
        threads: the number of threads that encode. Default: 1.

    Raises:
        InputError: an input is malformed, or was replaced after the task was planned.
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
