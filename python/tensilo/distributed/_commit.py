"""The version of a job, published at once."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike

from .. import _tensilo
from ._paths import absolute
from ._task import Fragment, Job

_DIFFERENT_JOBS = "fragments of different jobs: commit each job by itself"


def commit(out: str | PathLike[str], fragments: Iterable[Fragment]) -> int:
    """Publishes the files of a job as a version of the dataset, and returns its number.

    Readers see the version before, or all of this one. If the version has these files already, nothing
    changes: so repeat it when it is not known whether it succeeded. Fragments may be in any order, and
    repeated.

    Raises:
        ConflictError: another writer has published this version meanwhile. Plan again.
        ValueError: fragments are missing, or of several jobs.

    Cost: one listing of the folder of the job, and the writing of one text. No data file is opened.
    """
    found: dict[int, Fragment] = {}
    for fragment in fragments:
        known = found.setdefault(fragment.number, fragment)
        if known.job != fragment.job:
            raise ValueError(_DIFFERENT_JOBS)
        if known.file != fragment.file:
            raise ValueError(f"two different files have the number {fragment.number}: inputs changed during the job")
    if not found:
        raise ValueError("no fragments, of which a version could be made")
    first = found[min(found)]
    for fragment in found.values():
        if fragment.job != first.job:
            raise ValueError(_DIFFERENT_JOBS)
        _check_alike(first, fragment)
    _check_complete(first.job, found)
    job = (absolute(out), first.job.version, first.job.number)
    return _tensilo._publish(job, first.schema, [found[number].file for number in sorted(found)], first.job.change)


def _check_complete(job: Job, found: dict[int, Fragment]) -> None:
    missing = [number for number in range(job.count or 0) if number not in found]
    if missing:
        listed = ", ".join(map(str, missing[:10])) + (", ..." if len(missing) > 10 else "")
        raise ValueError(f"{len(missing)} of {job.count} fragments are missing: {listed}; run their tasks again")


def _check_alike(first: Fragment, other: Fragment) -> None:
    """Refuses files whose columns differ: their shapes were found in different samples."""
    if other.schema == first.schema:
        return
    for name in {**dict(first.schema.items()), **dict(other.schema.items())}:
        expected, found = first.schema.get(name), other.schema.get(name)
        if expected != found:
            raise ValueError(
                f"column {name!r} is {expected} in file {first.number}, and {found} in file {other.number}; "
                "declare its type, or its shape with shapes={...}"
            )
    raise ValueError(f"the metadata of file {other.number} are not those of file {first.number}")
