"""Samples of Python."""

from ._samples import write_samples


def from_iterable(samples, output, schema=None, *, columns=None, infer_samples=1024, progress=False, **options):
    """Writes the samples that an iterable yields, and opens the result.

    Samples are taken one by one and written in batches, so that memory holds a batch of at most 1024
    samples and about 16 MiB, and the first samples while their types are found (at most about 64 MiB).

    The type of a column is found as follows:

    - Arrays of NumPy, PyTorch or a library with DLPack are tensors of their type. An extent that differs
      among the first samples varies.
    - int, float and bool are scalars of i64 (u64 if one needs it), f64 and bool. Columns with int and float
      are f64.
    - str is utf8; bytes, bytearray and memoryview are bytes.
    - Lists of numbers that are rectangular are tensors like arrays; other lists are lists of these types.
    - dicts are structs: the members of a dict "box" are columns such as "box.x", and those of the dicts in a
      list "messages" columns of lists, such as "messages.content". A dict that is None in one of the first
      samples has a column of its own name for that. Exports join them again.
    - A column with None, or that a sample does not have, is nullable.

    Args:
        samples: dicts, such as a generator yields.
        output: a file, or a folder for a dataset: a path that ends in a slash, or any with
            ``shard_bytes``. It appears when it is complete.
        schema: types of columns, such as ``{"mel": tensilo.tensor("bf16", (None, 80), cast_from="f32")}``;
            those of others are found.
        columns: the keys to store, or members such as "box.x"; by default those of the schema and of the
            first samples, and a sample with another is an error.
        infer_samples: the number of the first samples that types are found from.
        progress: True for a line on the standard error, or a function of phase, done and total.
        options: those of ``tensilo.Writer``: ``shard_bytes``, ``profile``, ``metadata``, ``threads``,
            ``overwrite``.

    Returns:
        The ``Dataset``.

    Raises:
        InputError: samples without a common type, or one that does not fit the types of the first.
        TypeError: a value that cannot be stored, such as an array of objects.
        FileExistsError: the output is there.
    """
    total = len(samples) if hasattr(samples, "__len__") else None
    return write_samples(
        samples,
        output,
        schema=schema,
        columns=columns,
        infer_samples=infer_samples,
        total=total,
        progress=progress,
        options=options,
    )
