"""``from_iterable``: imports Python samples."""

from ._samples import write_samples


def from_iterable(samples, output, schema=None, *, columns=None, infer_samples=1024, progress=False, **options):
    """Writes the samples that an iterable yields, and opens the result.

    Samples are taken one by one and written in batches. Memory holds one batch, of at most 1024 samples and about
    16 MiB, and the first samples while their types are inferred (at most about 64 MiB).

    Types are inferred as follows:

    - Arrays of NumPy, PyTorch or another DLPack library become tensors of their dtype. An extent that differs between
      the first samples varies.
    - int, float and bool become scalars of i64 (u64 if a value needs it), f64 and bool. A mix of int and float becomes
      f64.
    - str becomes utf8; bytes, bytearray and memoryview become bytes.
    - Rectangular lists of numbers become tensors, as arrays do; other lists become lists of these types.
    - dicts become structs. The members of a dict "box" are columns such as "box.x"; the members of dicts in a list
      "messages" are columns of lists such as "messages.content". If a dict is None in one of the first samples, a
      column with the name of the dict records that. Exports rebuild the structs.
    - A column is nullable if a value is None or a sample does not have the key.

    Args:
        samples (iterable of dict): the samples, for example a generator that yields them.
        output (path): a file, or the folder of a dataset. It is a folder if the path ends in a slash or if
            ``shard_bytes`` is given. The output appears only when it is complete.
        schema (dict, optional): the types of some columns, such as
            ``{"mel": tensilo.tensor("bf16", (None, 80), cast_from="f32")}``. Default: all types are inferred.
        columns (list of str, optional): the keys to store, or members such as "box.x". Default: all keys of the schema
            and of the first samples; a later sample with another key is an error.
        infer_samples (int, optional): the number of samples from which types are inferred. Default: 1024.
        progress (bool or callable, optional): True to show progress on standard error, or a function that is called
            with ``(phase, done, total)``. Default: False.
        **options: the options ``shard_bytes``, ``profile``, ``metadata``, ``threads`` and ``overwrite`` of
            ``tensilo.Writer``.

    Returns:
        The ``Dataset``.

    Raises:
        InputError: the samples have no common type, or a later sample does not fit the types of the first samples.
        TypeError: a value cannot be stored, such as an object array.
        FileExistsError: the output exists.
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
