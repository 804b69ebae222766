"""``commit``: publishes the files of a job as one version.

The fragments contain everything that the manifest records, so no data file is opened.
"""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from .. import _tensilo
from ._paths import absolute
from ._task import Fragment, Job

_DIFFERENT_JOBS = "the fragments belong to different jobs: commit each job separately"


def commit(output: str | PathLike[str], fragments: Iterable[Fragment]) -> int:
    """Publishes the files of a job as a version of the dataset, and returns the version number.

    Readers see either the previous version or all of the new one. If the version already has these files, nothing
    changes, so it is safe to retry if you do not know whether a commit succeeded.

    Args:
        output: the folder of the dataset, or a prefix of an object store.
        fragments: the results of ``run``, in any order. Duplicates are allowed.

    Raises:
        ConflictError: another writer has published this version in the meantime; plan again.
        ValueError: fragments are missing, or belong to several jobs.

    Cost: lists the folder of the job and writes one manifest. No data file is opened.
    """
    found: dict[int, Fragment] = {}
    for fragment in fragments:
        known = found.setdefault(fragment.number, fragment)
        if known.job != fragment.job:
            raise ValueError(_DIFFERENT_JOBS)
        if known.file != fragment.file:
            raise ValueError(f"two different files have number {fragment.number}: the inputs changed during the job")
    if not found:
        raise ValueError("there are no fragments to commit")
    first = found[min(found)]
    for fragment in found.values():
        if fragment.job != first.job:
            raise ValueError(_DIFFERENT_JOBS)
        _check_alike(first, fragment)
    _check_complete(first.job, found)
    job = (absolute(output), first.job.version, first.job.number)
    return _tensilo._publish(job, first.schema, [found[number].file for number in sorted(found)], first.job.change)


def _check_complete(job: Job, found: dict[int, Fragment]) -> None:
    missing = [number for number in range(job.count or 0) if number not in found]
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise ValueError(f"{len(missing)} of {job.count} fragments are missing: {listed}; run these tasks again")


def _check_alike(first: Fragment, other: Fragment) -> None:
    """Refuses files with different columns, which can occur if tasks infer shapes from different samples."""
    if other.schema == first.schema:
        return
    for name in {**dict(first.schema.items()), **dict(other.schema.items())}:
        expected, found = first.schema.get(name), other.schema.get(name)
        if expected != found:
            raise ValueError(
                f"column {name!r} is {expected} in file {first.number}, but {found} in file {other.number}; "
                "declare its type, or its shape with shapes={...}"
            )
    raise ValueError(f"file {other.number} and file {first.number} have different metadata")
