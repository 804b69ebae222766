"""Datasets of PyTorch."""

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
    """Writes the samples of a dataset of PyTorch in their order, and opens the result.

    Args:
        dataset: a map-style or an iterable dataset. Its samples are dicts, or tuples.
        output: a file, or a folder for a dataset, see ``from_iterable``.
        names: the columns of samples that are tuples, in this order, or the one name of samples that are
            neither dicts nor tuples. Named tuples have names of their own.
        schema: types of columns; those of others are found as in ``from_iterable``.
        columns: the columns to store; all by default.
        transform: a function of a sample of the dataset, which returns the dict or tuple to store: such as
            images as arrays or bytes.
        num_workers: processes that read samples and transform them, of a map-style dataset.
        infer_samples: the number of the first samples that types are found from.
        progress: True for a line on the standard error, or a function of phase, done and total.
        options: those of ``tensilo.Writer``.

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
        raise ValueError("num_workers is for map-style datasets: each worker would yield all samples")
    total = len(dataset) if hasattr(dataset, "__len__") else None
    if num_workers:
        # the workers start before the writer has threads: it begins when types are found
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
    """Makes a dict of a sample; it can be pickled for workers."""

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
            found = "" if names is None else f", not {len(names)}"
            count = len(sample)
            raise ValueError(f"a sample has {count} values: pass names= with {count} names{found}")
        return dict(zip(names, sample, strict=True))

    def batch(self, samples):
        """Returns the dicts of samples."""
        return [self(sample) for sample in samples]


def _own(value):
    """Returns a sample of a worker with memory of its own: shared tensors keep a file open each."""
    if isinstance(value, Mapping):
        return {name: _own(member) for name, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_own(member) for member in value]
    return value.clone() if hasattr(value, "clone") else value
