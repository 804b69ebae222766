"""Samples of any source to a writer, batch by batch."""

import errno
import os
from collections.abc import Mapping
from itertools import chain, islice

from .. import _tensilo
from .._progress import shown
from ._schema import find_type, plain, refused

BATCH_BYTES = 16 << 20
_BATCH_SAMPLES = 1024
_EXAMINED_BYTES = 64 << 20


def check_output(output, options):
    """Raises ``FileExistsError`` if the output is there, before much is read."""
    path = os.fsdecode(output)
    if os.path.isdir(path):
        if os.listdir(path):
            raise FileExistsError(errno.EEXIST, "the folder is not empty; choose another", path)
    elif os.path.exists(path) and not options.get("overwrite"):
        raise FileExistsError(errno.EEXIST, "pass overwrite=True to replace it", path)


def write_samples(samples, output, *, schema, columns, examined, total, progress, options):
    """Writes an iterable of dicts, and opens the result.

    Args:
        samples: the dicts, which are taken one by one.
        output: the file or folder.
        schema: types of columns; those of others are found from the first samples.
        columns: the keys to store, or None for those of the schema and of the first samples.
        examined: the number of the first samples that types are found from.
        total: the number of samples, or None if it is not known.
        progress: see ``tensilo.convert``.
        options: those of ``tensilo.Writer``.
    """
    check_output(output, options)
    known = dict(schema.items()) if schema is not None else {}
    samples = _numbered(samples)
    head, head_bytes = [], 0
    for sample in islice(samples, max(examined, 1)):
        head.append(sample)
        head_bytes += size_of(list(sample.values()))
        if head_bytes >= _EXAMINED_BYTES:
            break
    if not head:
        raise refused("there are no samples")
    names = list(dict.fromkeys(chain(known, *head))) if columns is None else list(columns)
    types = {name: known.get(name) or _found(name, head) for name in names}
    batches = _batches(chain(head, samples), names, is_strict=columns is None)
    return write_batches(batches, output, types, total=total, progress=progress, options=options)


def write_batches(batches, output, schema, *, total, progress, options):
    """Writes batches, and opens the result.

    Args:
        batches: for each batch the number of samples, and a dict from names to arrays or lists.
        schema: a dict from names to types.
    """
    done = 0
    with shown(progress) as show, _tensilo.Writer(output, schema, **options) as writer:
        for count, batch in batches:
            _write(writer, batch, count, done)
            done += count
            if show is not None:
                show("importing", done, total)
        if not done:
            raise refused("there are no samples")
    return _tensilo.open(output)


def size_of(value):
    """Returns the approximate bytes of a value."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, (list, tuple)):
        is_numbers = bool(value) and isinstance(value[0], (int, float))
        return 8 * len(value) if is_numbers else sum(map(size_of, value))
    return int(getattr(value, "nbytes", 8))


def _numbered(samples):
    """Yields samples as dicts of plain values. Errors get the number of the sample."""
    samples, number = iter(samples), 0
    while True:
        name = None
        try:
            sample = next(samples)
            if not isinstance(sample, Mapping):
                raise TypeError(f"a sample is a dict, not {type(sample).__name__}")
            made = {}
            for name, value in sample.items():
                made[name] = plain(value)
        except StopIteration:
            return
        except Exception as error:
            error.add_note(f"sample {number}" + (f", column {name!r}" if name is not None else ""))
            raise
        yield made
        number += 1


def _found(name, head):
    try:
        return find_type([sample.get(name) for sample in head])
    except (TypeError, ValueError) as error:
        text = f"{error}, in the first {len(head)} samples; pass schema={{{name!r}: ...}}"
        raise refused(text, column=name) from None


def _batches(samples, names, is_strict):
    count, size, number = 0, 0, 0
    batch = {name: [] for name in names}
    for sample in samples:
        if is_strict and not batch.keys() >= sample.keys():
            extra = ", ".join(repr(key) for key in sample if key not in batch)
            text = f"sample {number} has {extra}, which the first samples do not have"
            raise refused(f"{text}; pass schema= or columns=")
        for name, column in batch.items():
            value = sample.get(name)
            column.append(value)
            size += size_of(value)
        count, number = count + 1, number + 1
        if count == _BATCH_SAMPLES or size >= BATCH_BYTES:
            yield count, batch
            count, size, batch = 0, 0, {name: [] for name in names}
    if count:
        yield count, batch


def _write(writer, batch, count, start):
    try:
        writer.write(**batch)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        # nothing of the batch is written: the first sample that fails alone is the one, and the file is
        # given up anyway
        for i in range(count):
            try:
                writer.write(**{name: column[i : i + 1] for name, column in batch.items()})
            except (TypeError, ValueError, BufferError, RuntimeError) as own:
                text = str(own).replace("sample 0 of the call: ", "")
                ways = "if the sample is right, pass schema= with a type that fits"
                raise refused(f"sample {start + i}: {text}; {ways}") from own
        raise error
