"""Writes samples from any source, in batches.

Types are inferred from the first samples, which are held in memory until then (at most about 64 MiB). Then all samples
are written in batches. If the writer refuses a batch, its samples are written one by one to find the sample at fault,
and the error names that sample.
"""

import errno
import os
from collections.abc import Mapping
from itertools import chain, islice

from .. import _tensilo
from .._progress import progress_callback
from ._columns import check, columns_of
from ._schema import plain, refused

BATCH_BYTES = 16 << 20
_BATCH_SAMPLES = 1024
_MAX_INFER_BYTES = 64 << 20


def check_output(output, options):
    """Raises ``FileExistsError`` if the output exists, before any input is read."""
    path = os.fsdecode(output)
    if os.path.isdir(path):
        if os.listdir(path):
            raise FileExistsError(errno.EEXIST, "the folder is not empty; choose another", path)
    elif os.path.exists(path) and not options.get("overwrite"):
        raise FileExistsError(errno.EEXIST, "pass overwrite=True to replace it", path)


def write_samples(samples, output, *, schema, columns, infer_samples, total, progress, options):
    """Writes an iterable of dicts, and opens the result.

    Args:
        samples: the dicts, which are taken one by one.
        output: the file or folder.
        schema: the types of some columns. Other types are inferred from the first samples.
        columns: the keys to store, or None for all keys of the schema and of the first samples.
        infer_samples: the maximum number of samples from which types are inferred.
        total: the number of samples, or None if it is unknown.
        progress: see ``tensilo.convert``.
        options: the options of ``tensilo.Writer``.
    """
    check_output(output, options)
    known, columns = dict(schema.items()) if schema is not None else {}, as_names(columns)
    samples = _numbered(samples)
    first_samples, first_sample_bytes = [], 0
    for sample in islice(samples, max(infer_samples, 1)):
        first_samples.append(sample)
        first_sample_bytes += size_of(list(sample.values()))
        if first_sample_bytes >= _MAX_INFER_BYTES:
            break
    if not first_samples:
        raise refused("there are no samples")
    leaves, structures = _columns(known, first_samples, columns)
    types = {leaf.name: leaf.type for leaf in leaves}
    batches = _batches(chain(first_samples, samples), leaves, structures, is_strict=columns is None)
    return write_batches(batches, output, types, total=total, progress=progress, options=options)


def write_batches(batches, output, schema, *, total, progress, options):
    """Writes batches, and opens the result.

    Args:
        batches: pairs of the number of samples and a dict from names to arrays or lists.
        schema: a dict from names to types.
        total, progress, options: see ``write_samples``.
    """
    done = 0
    with progress_callback(progress) as show, _tensilo.Writer(output, schema, **options) as writer:
        for count, batch in batches:
            _write(writer, batch, count, done)
            done += count
            if show is not None:
                show("importing", done, total)
        if not done:
            raise refused("there are no samples")
    return _tensilo.open(output)


def as_names(columns):
    """Returns column names as a list. None stays None."""
    return [columns] if isinstance(columns, str) else columns


def size_of(value):
    """Returns the approximate size of a value, in bytes."""
    if isinstance(value, (str, bytes)):
        return len(value)
    if isinstance(value, (list, tuple)):
        is_numbers = bool(value) and isinstance(value[0], (int, float))
        return 8 * len(value) if is_numbers else sum(map(size_of, value))
    if isinstance(value, dict):
        return sum(map(size_of, value.values()))
    return int(getattr(value, "nbytes", 8))


def _numbered(samples):
    """Yields samples as dicts of plain values. Adds the index of the sample to errors as a note."""
    samples, number = iter(samples), 0
    while True:
        name = None
        try:
            sample = next(samples)
            if not isinstance(sample, Mapping):
                raise TypeError(f"a sample must be a dict, not {type(sample).__name__}")
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


def _columns(known, first_samples, columns):
    """Returns the columns for the samples, and for each key the structure of its dicts."""
    keys = dict.fromkeys(chain(*first_samples))
    # a name in the schema can be the member of a dict rather than a key
    keys = dict.fromkeys([*(name for name in known if not any(_is_member(name, key) for key in keys)), *keys])
    if columns is not None:
        # a key with dots takes precedence over a member of a dict
        requested = [
            name if name in keys else next((key for key in keys if _is_in(name, key)), name) for name in columns
        ]
        keys = dict.fromkeys(requested)
    leaves, structures = [], {}
    for key in keys:
        found, structures[key] = columns_of(key, [sample.get(key) for sample in first_samples], known)
        leaves += found
    if columns is not None:
        leaves = _chosen(leaves, columns)
    else:
        stored = {leaf.name for leaf in leaves if not leaf.is_of_dicts}
        for name in known:
            if name not in stored:
                text = "the schema has this column, but the first samples have no values for it"
                raise refused(f"{text}; infer from more samples with infer_samples=, or leave it out", column=name)
    names = set()
    for leaf in leaves:
        if leaf.name in names:
            raise refused("a key with dots and a member of a dict have the same name", column=leaf.name)
        names.add(leaf.name)
    return leaves, structures


def _chosen(leaves, columns):
    """Returns the columns with these names and their members. Each follows the columns of its enclosing dicts."""
    chosen = {}
    for name in columns:
        found = [leaf for leaf in leaves if _is_in(leaf.name, name)]
        if not found:
            raise refused("none of the first samples has this key", column=name)
        for leaf in found:
            chosen.update({other: None for other in leaves if other.is_of_dicts and _is_in(leaf.name, other.name)})
            chosen[leaf] = None
    return list(chosen)


def _is_member(name, key):
    return name.startswith(f"{key}.")


def _is_in(name, outer):
    """Returns whether a name is ``outer`` or a member of it."""
    return name == outer or _is_member(name, outer)


def _batches(samples, leaves, structures, is_strict):
    count, size, number = 0, 0, 0
    nested = {key: structure for key, structure in structures.items() if structure is not None}
    batch = {leaf.name: [] for leaf in leaves}
    for sample in samples:
        if is_strict and not structures.keys() >= sample.keys():
            extra = ", ".join(repr(key) for key in sample if key not in structures)
            text = f"sample {number} has {extra}, which the first samples do not have"
            raise refused(f"{text}; pass schema= or columns=")
        try:
            for key, structure in nested.items():
                check(structure, sample.get(key), key)
        except ValueError as error:
            raise refused(f"sample {number}: {error}; infer from more samples with infer_samples=") from None
        for leaf, column in zip(leaves, batch.values(), strict=True):
            value = leaf.value(sample)
            column.append(value)
            size += size_of(value)
        count, number = count + 1, number + 1
        if count == _BATCH_SAMPLES or size >= BATCH_BYTES:
            yield count, batch
            count, size, batch = 0, 0, {leaf.name: [] for leaf in leaves}
    if count:
        yield count, batch


def _write(writer, batch, count, start):
    try:
        writer.write(**batch)
    except (TypeError, ValueError, BufferError, RuntimeError) as error:
        # The batch was not written. Write its samples one by one to find the one at fault; the output is
        # discarded afterwards.
        for i in range(count):
            try:
                writer.write(**{name: column[i : i + 1] for name, column in batch.items()})
            except (TypeError, ValueError, BufferError, RuntimeError) as own:
                text = str(own).replace("sample 0 of the call: ", "")
                ways = "if the sample is valid, pass schema= with a type that fits"
                raise refused(f"sample {start + i}: {text}; {ways}") from own
        raise error
