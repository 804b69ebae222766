"""``convert`` and ``append``.

The extension converts without holding the GIL. This module packs the options and shows progress. It warns about
metadata that the format cannot store, and about columns that loaders will refuse.
"""

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
    ignore_statistics: bool = False,
    profile: str | Mapping[str, str] = "balanced",
    shard_bytes: int | str | None = None,
    threads: int | Literal["auto"] = "auto",
    overwrite: bool = False,
    progress: _Progress = False,
) -> _tensilo.Dataset:
    """Converts files, or Arrow data in memory, and opens the result.

    The inputs can be Parquet, Arrow, tensilo, NumPy, safetensors, WebDataset, TFRecord, JSON lines or Megatron files.

    Args:
        inputs: a path, a folder or a pattern, each local or in an object store; a list of these; or an
            object with Arrow data, such as a pyarrow table, a polars or pandas frame, or a DuckDB relation.
            Tables and frames are read in place. A stream can be read only once, so it is first copied to an
            unnamed temporary file in the folder of the output.
        output: the path of a file, or of the folder of a dataset. It is a folder if the path ends in a slash
            or if ``shard_bytes`` is given. The output appears only when it is complete.
        bf16: whether to round all float columns to bf16. Default: False.
        casts: numeric or decimal columns to convert: a dict from names to "f32", "bf16", "i64" or another
            numeric dtype. Floats are rounded, and the file records the rounding errors. Integers must
            convert without loss. Default: no casts.
        columns: the columns to convert, in this order. Default: all columns.
        skip: columns to leave out. Default: none.
        rename: new names for columns or structs: a dict from old to new names. A field stays in its struct.
            The other arguments use the old names. Default: no renaming.
        shapes: known shapes of list columns: a dict from names to tuples, with None where an extent varies.
            Default: a first pass over the inputs finds the shapes.
        file_is_sample: whether each ``.npz`` or ``.safetensors`` file is a single sample. Default: False,
            which means that the first axis of each array is the sample axis.
        null_elements: how to treat nulls inside tensors: "keep" stores such a column as lists, "refuse" raises an
            error, and "nan" and "zero" replace the nulls. Default: "keep".
        ignore_statistics: whether to ignore the null counts recorded in the inputs, and search structs and lists
            for nulls in an additional pass. Default: False.
        profile: "balanced", "fast" (to decode), "small", "raw" (for views), or "bitshuffle-zstd"; or a dict
            from column names to profiles. Columns that are not in the dict use the default. Default: "balanced".
        shard_bytes: the raw size of each data file of a dataset: a number of bytes, or a string such as "1GiB".
            Default: "1GiB" if the output is a folder.
        threads: the number of threads that encode. Default: "auto", all CPUs.
        overwrite: whether to replace an existing file. Default: False.
        progress: True to show progress on standard error, or a function that is called with
            ``(phase, done, total)``. Default: False.

    Returns:
        The ``Dataset``.

    Warns:
        UserWarning: a column of decimals or intervals was stored as unscaled integers, bytes or components.
            Arrays and loaders refuse such a column. With ``casts``, decimals are stored as their values
            and the components of intervals as plain numbers.

    Raises:
        InputError: an input is malformed, or has values that cannot be stored.
        FileExistsError: the output exists.
        KeyboardInterrupt: the user pressed Ctrl-C. No output is left behind.
    """
    with progress_callback(progress) as show:
        dropped = _tensilo._convert(
            inputs,
            output,
            conversion(
                bf16, casts, columns, skip, shapes, null_elements, profile, file_is_sample, rename, ignore_statistics
            ),
            shard_bytes=shard_bytes,
            threads=threads,
            overwrite=overwrite,
            progress=show,
        )
    if dropped:
        message = "some metadata was left out because the format cannot store it: " + ", ".join(dropped)
        warnings.warn(message, stacklevel=2)
    converted = _tensilo.open(output)
    for column in converted.schema.values():
        if column._advice is not None:
            warnings.warn(f"{column._advice}; loaders and exports to array files refuse this column", stacklevel=2)
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

    A file gets a new commit, and a dataset gets a new version. Readers see either all of the new samples or none.

    Args:
        target: the file, or the folder of the dataset.
        inputs: the inputs, as in ``convert``. They must have the columns of the target.
        skip_extra_columns: whether to leave out columns that the target does not have. Default: False.
        file_is_sample, null_elements, profile, threads, progress: see ``convert``.
        shard_bytes: the raw size of each new data file: a number of bytes, or a string such as "1GiB". Only for
            datasets. Default: one data file holds all new samples.
        discard_tail: whether to cut off the uncommitted tail that an interrupted append left at the end of
            the file. Default: False.

    Returns:
        The number of appended samples.

    Raises:
        ConflictError: another writer has published a version of the dataset in the meantime.
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
    ignore_statistics: bool = False,
) -> dict[str, Any]:
    """Returns the options that determine the content of the output, in the form that the extension takes."""
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
        "ignore_statistics": ignore_statistics,
    }
