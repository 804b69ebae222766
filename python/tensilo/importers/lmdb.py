"""``from_lmdb``: imports LMDB environments.

LMDB maps the file, and the system kills a process that reads a truncated page. So this module checks the length of
the file first; see ``_lmdb_pages``.
"""

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
    """Writes the values of an LMDB environment in key order, and opens the result.

    LMDB orders keys by their bytes: "10" comes before "2". No process may write to the environment during the import,
    unless the environment has a lock file.

    Args:
        path (path): the folder or the file of the environment.
        output (path): a file, or a folder for a dataset; see ``from_iterable``.
        decode (callable, optional): a function that takes the bytes of a value and returns the value to store: an
            array, a number, str, bytes, a list, or a dict for several columns. ``blosc_decoder`` creates one. Default:
            values are stored as bytes.
        key (str, optional): the name of the column that stores the keys as bytes. None leaves them out. Default: "key".
        name (str, optional): the name of the column that stores values that are not dicts. Default: "value".
        skip (iterable of bytes, optional): keys that are not samples, such as ``[b"__len__"]``. Default: none.
        db (str, optional): the name of a database in the environment. Default: None, the unnamed database.
        schema (dict, optional): the types of some columns. Default: all types are inferred, as in ``from_iterable``.
        columns (list of str, optional): the columns to store. Default: all columns.
        infer_samples (int, optional): the number of samples from which types are inferred. Default: 1024.
        progress (bool or callable, optional): True to show progress on standard error, or a function that is called
            with ``(phase, done, total)``. Default: False.
        **options: options of ``tensilo.Writer``.

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
    # the lock keeps a writing process from reusing pages that this one reads
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
    """Refuses a truncated file: LMDB maps it, and the system kills a process that reads truncated pages."""
    page_bytes, page_count = env.stat()["psize"], env.info()["last_pgno"] + 1
    expected, found = page_bytes * page_count, os.path.getsize(path)
    if found >= expected:
        return
    # free pages can be missing, because LMDB may never have written them
    free = set()
    with suppress(ValueError, struct.error), open(path, "rb") as file:
        free = free_pages(file, page_bytes)
    if not all(page in free for page in range(found // page_bytes, page_count)):
        raise refused(f"the file is truncated: expected {expected:,} bytes, found {found:,}", path=path)


def _as_is(value):
    return value


def _samples(transaction, decode, key, name, skip):
    for text, value in transaction.cursor():
        if text in skip:
            continue
        try:
            decoded = decode(value)
        except Exception as error:
            error.add_note(f"key {text!r}; to leave it out, pass skip=[{text!r}]")
            raise
        keys = {} if key is None else {key: text}
        yield {**keys, **(decoded if isinstance(decoded, Mapping) else {name: decoded})}
