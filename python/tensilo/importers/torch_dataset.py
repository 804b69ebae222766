"""``from_torch_dataset``: imports PyTorch datasets."""

from collections.abc import Mapping

from ._samples import write_samples


def from_torch_dataset(
    dataset,
    output,
    *,
    names=None,
    schema=None,
    columns=None,
    transform=None,
    num_workers=0,
    infer_samples=1024,
    progress=False,
    **options,
):
    """Writes the samples of a PyTorch dataset in order, and opens the result.

    Args:
        dataset (Dataset or IterableDataset): a map-style or iterable dataset. Its samples are dicts or tuples.
        output (path): a file, or a folder for a dataset; see ``from_iterable``.
        names (list of str or str, optional): the column names of tuples, in order, or the single name for samples that
            are neither dicts nor tuples. Default: the field names of named tuples.
        schema (dict, optional): the types of some columns. Default: all types are inferred, as in ``from_iterable``.
        columns (list of str, optional): the columns to store. Default: all columns.
        transform (callable, optional): a function that takes a sample and returns the dict or tuple to store, for
            example with images as arrays or bytes. Default: None.
        num_workers (int, optional): the number of processes that read and transform samples; only for map-style
            datasets. Default: 0, this process.
        infer_samples (int, optional): the number of samples from which types are inferred. Default: 1024.
        progress (bool or callable, optional): True to show progress on standard error, or a function that is called
            with ``(phase, done, total)``. Default: False.
        **options: options of ``tensilo.Writer``.

    Returns:
        The ``Dataset``.

    Raises:
        ImportError: PyTorch is not installed.
        InputError, TypeError, FileExistsError: see ``from_iterable``.
    """
    try:
        from torch.utils.data import DataLoader, IterableDataset
    except ImportError as error:
        raise ImportError("from_torch_dataset needs PyTorch: pip install torch") from error
    prepare = _Prepare((names,) if isinstance(names, str) else names, transform)
    is_iterable = isinstance(dataset, IterableDataset) or not hasattr(dataset, "__getitem__")
    if is_iterable and num_workers:
        raise ValueError("num_workers needs a map-style dataset: each worker would yield all samples of this dataset")
    total = len(dataset) if hasattr(dataset, "__len__") else None
    if num_workers:
        # the workers start before the writer has threads, because the writer starts after type inference
        loader = DataLoader(dataset, batch_size=16, num_workers=num_workers, collate_fn=prepare.batch)
        samples = (_own(sample) for batch in loader for sample in batch)
    elif is_iterable:
        samples = map(prepare, dataset)
    else:
        samples = (prepare(dataset[i]) for i in range(total))
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


class _Prepare:
    """Converts a sample to a dict. It is a class so that it can be pickled for workers."""

    def __init__(self, names, transform):
        self._names = names
        self._transform = transform

    def __call__(self, sample):
        if self._transform is not None:
            sample = self._transform(sample)
        if isinstance(sample, Mapping):
            return dict(sample)
        names = self._names
        if not isinstance(sample, (tuple, list)):
            sample = (sample,)
        elif names is None:
            names = getattr(sample, "_fields", None)
        if names is None or len(names) != len(sample):
            found = "" if names is None else f" instead of {len(names)}"
            count = len(sample)
            raise ValueError(f"a sample has {count} values: pass {count} names in names={found}")
        return dict(zip(names, sample, strict=True))

    def batch(self, samples):
        """Converts samples to dicts."""
        return [self(sample) for sample in samples]


def _own(value):
    """Copies a sample of a worker to private memory, because each shared tensor would keep a file open."""
    if isinstance(value, Mapping):
        return {name: _own(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_own(member) for member in value]
    return value.clone() if hasattr(value, "clone") else value
