"""``from_hdf5``: imports HDF5 files, in batches of whole HDF5 chunks if memory allows it."""

from contextlib import nullcontext, suppress

from ._hdf5_column import Column
from ._hdf5_sources import check_sources, find_datasets, linked
from ._samples import BATCH_BYTES, as_names, check_output, size_of, write_batches
from ._schema import refused

_CACHE_BYTES = 16 << 20
_RAGGED_SAMPLES = 1024


def from_hdf5(path_or_file, output, *, columns=None, schema=None, views=None, progress=False, **options):
    """Writes the datasets of an HDF5 file as columns, and opens the result.

    The first dimension of a dataset is the sample axis. A column is named after the path of its dataset, such as
    "train/mel", and a field of a compound dataset is "table.field". Numbers become tensors, strings become utf8, arrays
    of variable length (vlen) become tensors whose extent varies, and opaque values become bytes. Attributes are not
    stored. Filters of ``hdf5plugin`` are available if it is installed. Virtual datasets, external files and external
    links are followed. If one of their files is missing or too short, the dataset is refused, because HDF5 would return
    fill values.

    Memory holds one batch of about 16 MiB, or one HDF5 chunk of each dataset if these chunks are larger.

    Args:
        path_or_file (path, h5py.File or h5py.Group): a file, or an open file or group.
        output (path): a file, or a folder for a dataset; see ``from_iterable``.
        columns (list of str, optional): the paths of the datasets to store, in this order. Default: all datasets.
        schema (dict, optional): the types of some columns, such as
            ``{"mel": tensilo.tensor("bf16", (80,), cast_from="f32")}``, or ``tensilo.binary()`` for strings that are
            not UTF-8. Default: the types of the datasets.
        views (dict, optional): dtypes to reinterpret the bits of datasets as, such as ``{"mel": "bf16"}`` for bf16
            that is stored as uint16. Default: none.
        progress (bool or callable, optional): True to show progress on standard error, or a function that is called
            with ``(phase, done, total)``. Default: False.
        **options: options of ``tensilo.Writer``.

    Returns:
        The ``Dataset``.

    Raises:
        ImportError: ``h5py`` is not installed.
        KeyError: a requested dataset or column does not exist.
        InputError: datasets have different numbers of samples or a type that cannot be stored, or files with their
            values are missing.
        FileExistsError: the output exists.
    """
    try:
        import h5py
    except ImportError as error:
        raise ImportError("from_hdf5 needs h5py: pip install h5py") from error
    with suppress(ImportError):
        import hdf5plugin  # noqa: F401 (it registers filters)
    check_output(output, options)
    known, views = dict(schema.items()) if schema is not None else {}, views or {}
    is_open = isinstance(path_or_file, h5py.Group)
    opened = nullcontext(path_or_file) if is_open else h5py.File(path_or_file, "r", rdcc_nbytes=_CACHE_BYTES)
    with opened as group:
        found = [Column(h5py, *source, known, views) for source in _sources(h5py, group, as_names(columns))]
        total = _sample_count(found)
        _check_names("schema", known, found)
        _check_names("views", views, found)
        types = {column.name: column.type for column in found}
        batches = _batches(found, total)
        return write_batches(batches, output, types, total=total, progress=progress, options=options)


def _sources(h5py, group, columns):
    """Yields the name, dataset and field of each column."""
    found = dict(find_datasets(h5py, group)) if columns is None else {}
    for path in found if columns is None else columns:
        dataset = found.get(path)
        if dataset is None and group.get(path, getlink=True) is not None:
            dataset = linked(h5py, group, path, path)
        if not isinstance(dataset, h5py.Dataset):
            names = ", ".join(dict(find_datasets(h5py, group, passes_over=True)))
            raise KeyError(f"no dataset {path!r}: the datasets are {names}")
        check_sources(h5py, dataset, path)
        if not dataset.shape:
            text = "a dataset without dimensions has no samples; select the other datasets with columns="
            raise refused(text, column=path)
        for field in dataset.dtype.names or [None]:
            yield path if field is None else f"{path}.{field}", dataset, field


def _sample_count(columns):
    counts = {column.name: len(column.dataset) for column in columns}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{name} {count:,}" for name, count in counts.items())
        ways = "select datasets with columns="
        raise refused(f"datasets have different numbers of samples: {listed}; {ways}")
    if not counts:
        raise refused("there are no datasets")
    return next(iter(counts.values()))


def _check_names(argument, named, columns):
    names = [column.name for column in columns]
    for name in named:
        if name not in names:
            raise KeyError(f"{argument}: no column {name!r}: the columns are {', '.join(names)}")


def _batches(columns, total):
    """Yields batches of whole HDF5 chunks unless these are large. Large ragged samples make batches smaller."""
    datasets = {column.dataset: None for column in columns}
    row_bytes = max(sum(column.row_bytes for column in columns), 1)
    chunk = max((dataset.chunks or (1,))[0] for dataset in datasets)
    rows = max(BATCH_BYTES // row_bytes // chunk, 1) * chunk
    if rows * row_bytes > 4 * BATCH_BYTES:
        rows = max(BATCH_BYTES // row_bytes, 1)
    is_ragged = any(column.is_ragged for column in columns)
    max_rows, rows, start = min(rows, _RAGGED_SAMPLES), min(rows, 16) if is_ragged else rows, 0
    while start < total:
        end = min(start + rows, total)
        read = {dataset: dataset[start:end] for dataset in datasets}
        batch = {column.name: column.samples(read[column.dataset], start) for column in columns}
        yield end - start, batch
        if is_ragged:
            rows = max(min(4 * rows, max_rows, rows * BATCH_BYTES // max(size_of(list(batch.values())), 1)), 1)
        start = end
