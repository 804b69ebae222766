"""Conversions, and additions to what is there."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal

from . import _tensilo
from ._progress import progress_callback

_Path = str | PathLike[str]
_Progress = bool | Callable[[str, int, int | None], object]


def convert(
    inputs: Any,
    output: _Path,
    *,
    bf16: bool = False,
    casts: Mapping[str, Any] | None = None,
    columns: str | Sequence[str] | None = None,
    skip: str | Sequence[str] = (),
    rename: Mapping[str, str] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
    file_is_sample: bool = False,
    null_elements: Literal["keep", "refuse", "nan", "zero"] = "keep",
    profile: str | Mapping[str, str] = "balanced",
    shard_bytes: int | str | None = None,
    threads: int | Literal["auto"] = "auto",
    overwrite: bool = False,
    progress: _Progress = False,
) -> _tensilo.Dataset:
    """Converts files, or Arrow data in memory, and opens the result.

    Files are Parquet, Arrow, tensilo, NumPy, safetensors, WebDataset, TFRecord, JSON lines or Megatron.

    Args:
        inputs: a path, a folder, a pattern, also in an object store, a list of these, or an object with
            Arrow data: a table of pyarrow, a frame of polars or pandas, a relation of DuckDB. Tables and
            frames are read in place. Streams, which can be read once, are copied to an unnamed temporary
            file in the folder of the output.
        output: a file, or a folder for a dataset: a path that ends in a slash, or any with
            ``shard_bytes``. It appears when it is complete.
        bf16: whether all columns of floats are rounded to bf16.
        casts: columns of numbers or decimals, and the types that they become: a dict from names to "f32",
            "bf16", "i64" or another type of numbers. Floats are rounded, and the file records the errors;
            integers are exact, or an error.
        columns: the columns to convert, in this order; all by default.
        skip: columns to leave out.
        rename: other names for columns or structs: a dict from name to new name. A field stays in its
            struct. The other arguments have the names before it.
        shapes: shapes of list columns that are known: a dict from names to tuples, None where an extent
            varies. By default a first pass finds them.
        file_is_sample: whether a ``.npz`` or ``.safetensors`` file is one sample. By default the first axis
            of its arrays counts samples.
        null_elements: what becomes of nulls inside tensors: "keep" stores lists, "refuse" raises, "nan"
            and "zero" replace them.
        profile: "balanced", "fast" to read, "small", "raw" for views, or "bitshuffle-zstd". A dict from
            names to profiles chooses them for these columns; the others have "balanced".
        shard_bytes: the raw bytes of a data file of a dataset, such as "1GiB".
        threads: how many encode: "auto" for all processors.
        overwrite: whether a file that is there is replaced.
        progress: True for a line on the standard error, or a function of phase, done and total.

    Returns:
        The ``Dataset``.

    Warns:
        UserWarning: a column of decimals or intervals is stored as scaled integers, bytes or parts, which
            arrays and loaders refuse. For decimals, ``casts`` stores the values; for intervals, their
            parts as plain numbers.

    Raises:
        InputError: an input is malformed, or has values that cannot be stored.
        FileExistsError: the output is there.
        KeyboardInterrupt: after Ctrl-C; nothing is left of the output.
    """
    with progress_callback(progress) as show:
        dropped = _tensilo._convert(
            inputs,
            output,
            conversion(bf16, casts, columns, skip, shapes, null_elements, profile, file_is_sample, rename),
            shard_bytes=shard_bytes,
            threads=threads,
            overwrite=overwrite,
            progress=show,
        )
    if dropped:
        message = "some metadata was left out because the format cannot keep it: " + ", ".join(dropped)
        warnings.warn(message, stacklevel=2)
    converted = _tensilo.open(output)
    for column in converted.schema.values():
        if column._advice is not None:
            warnings.warn(f"{column._advice}; loaders and array files refuse this column", stacklevel=2)
    return converted


def append(
    target: _Path,
    inputs: Any,
    *,
    skip_extra_columns: bool = False,
    file_is_sample: bool = False,
    null_elements: Literal["keep", "refuse", "nan", "zero"] = "keep",
    profile: str | Mapping[str, str] = "balanced",
    shard_bytes: int | str | None = None,
    threads: int | Literal["auto"] = "auto",
    discard_tail: bool = False,
    progress: _Progress = False,
) -> int:
    """Appends files, or Arrow data in memory, to a file or a dataset.

    A file gets a new commit, a dataset a new version: readers see all of the new samples, or none.

    Args:
        target: the file, or the folder of the dataset.
        inputs, file_is_sample: as those of ``convert``. They have the columns of the target.
        skip_extra_columns: whether columns that the target does not have are left out.
        discard_tail: whether bytes that an append left unfinished at the end of a file are cut off.

    Returns:
        The number of samples that were appended.

    Raises:
        ConflictError: another writer has published a version of the dataset meanwhile.
    """
    with progress_callback(progress) as show:
        return _tensilo._append(
            target,
            inputs,
            skip_extra_columns=skip_extra_columns,
            file_is_sample=file_is_sample,
            null_elements=null_elements,
            profile=profile,
            shard_bytes=shard_bytes,
            threads=threads,
            discard_tail=discard_tail,
            progress=show,
        )


def conversion(
    bf16: bool,
    casts: Mapping[str, Any] | None,
    columns: str | Sequence[str] | None,
    skip: str | Sequence[str],
    shapes: Mapping[str, Sequence[int | None]] | None,
    null_elements: str,
    profile: str | Mapping[str, str],
    file_is_sample: bool = False,
    rename: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Returns the options that say what a conversion makes, as the compiled part takes them."""
    return {
        "bf16": bf16,
        "casts": casts,
        "columns": [columns] if isinstance(columns, str) else columns,
        "skip": [skip] if isinstance(skip, str) else list(skip),
        "rename": dict(rename or {}),
        "shapes": shapes,
        "null_elements": null_elements,
        "profile": profile,
        "file_is_sample": file_is_sample,
    }
