"""LMDB environments."""

import os
import struct
from collections.abc import Mapping
from contextlib import suppress

from ._lmdb_pages import free_pages
from ._samples import check_output, write_samples
from ._schema import refused


def from_lmdb(
    path,
    output,
    *,
    decode=None,
    key="key",
    name="value",
    skip=(),
    db=None,
    schema=None,
    columns=None,
    infer_samples=1024,
    progress=False,
    **options,
):
    """Writes the values of an LMDB environment in the order of its keys, and opens the result.

    LMDB orders keys by their bytes: "10" is before "2". No process may write to the environment meanwhile
    unless it has its lock file.

    Args:
        path: the folder or the file of the environment.
        output: a file, or a folder for a dataset, see ``from_iterable``.
        decode: a function of the bytes of a value, which returns what to store: an array, a number, a str,
            bytes or a list, or a dict of several columns. ``blosc_decoder`` makes one. By default values
            are stored as bytes.
        key: the name of the column of the keys, as bytes; None leaves them out.
        name: the name of the column of the values, unless these are dicts.
        skip: keys that are no samples, such as ``[b"__len__"]``.
        db: the name of a database in the environment, or None for the unnamed one.
        schema: types of columns; those of others are found as in ``from_iterable``.
        columns: the columns to store; all by default.
        infer_samples: the number of the first samples that types are found from.
        progress: True for a line on the standard error, or a function of phase, done and total.
        options: those of ``tensilo.Writer``.

    Returns:
        The ``Dataset``.

    Raises:
        ImportError: ``lmdb`` is not installed.
        InputError, TypeError, FileExistsError: see ``from_iterable``.
    """
    try:
        import lmdb
    except ImportError as error:
        raise ImportError("from_lmdb needs lmdb: pip install lmdb") from error
    check_output(output, options)
    path, is_folder = os.fsdecode(path), os.path.isdir(path)
    # with its lock file, pages that this reads are not used again by a process that writes
    lock = os.access(os.path.join(path, "lock.mdb") if is_folder else path + "-lock", os.W_OK)
    skip = {text.encode() if isinstance(text, str) else bytes(text) for text in skip}
    max_dbs = int(db is not None)
    with lmdb.open(path, subdir=is_folder, readonly=True, lock=lock, create=False, max_dbs=max_dbs) as env:
        _check_length(env, os.path.join(path, "data.mdb") if is_folder else path)
        opened = env.open_db(db.encode() if isinstance(db, str) else db, create=False)
        with env.begin(db=opened) as transaction:
            total = transaction.stat(opened)["entries"]
            total -= sum(transaction.get(text) is not None for text in skip)
            return write_samples(
                _samples(transaction, decode or _as_is, key, name, skip),
                output,
                schema=schema,
                columns=columns,
                infer_samples=infer_samples,
                total=total,
                progress=progress,
                options=options,
            )


def _check_length(env, path):
    """Refuses a file that was cut off: LMDB maps it, and the system ends a process that reads what is gone."""
    page_bytes, page_count = env.stat()["psize"], env.info()["last_pgno"] + 1
    expected, found = page_bytes * page_count, os.path.getsize(path)
    if found >= expected:
        return
    # pages that nothing reads may never have been written
    free = set()
    with suppress(ValueError, struct.error), open(path, "rb") as file:
        free = free_pages(file, page_bytes)
    if not all(page in free for page in range(found // page_bytes, page_count)):
        raise refused(f"the file is cut off: it has {found:,} bytes, not {expected:,}", path=path)


def _as_is(value):
    return value


def _samples(transaction, decode, key, name, skip):
    for text, value in transaction.cursor():
        if text in skip:
            continue
        try:
            decoded = decode(value)
        except Exception as error:
            error.add_note(f"key {text!r}; skip=[{text!r}] leaves it out")
            raise
        keys = {} if key is None else {key: text}
        yield {**keys, **(decoded if isinstance(decoded, Mapping) else {name: decoded})}
