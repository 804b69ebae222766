"""``from_hf``: imports datasets of Hugging Face ``datasets`` from their Arrow data, without decoding them."""

from itertools import chain

from .._convert import convert
from .._progress import progress_callback
from ._samples import check_output
from ._schema import refused

_BATCH_SAMPLES = 1000


def from_hf(dataset, output, *, columns=None, metadata=None, progress=False, **options):
    """Writes a ``datasets.Dataset`` from its Arrow data, and opens the result.

    Nothing is decoded: an image or audio column "image" becomes the columns "image.bytes" and "image.path". If the
    column refers to files, they are read into "image.bytes". Structs become one column per field, with dots between the
    names. A pass over all samples finds shapes, as in ``tensilo.convert``. Formats and transforms of the dataset are
    ignored.

    The Arrow data goes through an unnamed temporary file in the folder of the output, so memory holds only a batch.

    Args:
        dataset (datasets.Dataset): the dataset, such as ``load_dataset(name, split="train")`` returns.
        output (path): a file, or a folder for a dataset; see ``from_iterable``.
        columns (list of str, optional): the columns of ``dataset`` to store. Default: all columns.
        metadata (dict, optional): strings to store with the file. Default: none.
        progress (bool or callable, optional): True to show progress on standard error, or a function that is called
            with ``(phase, done, total)``. Default: False.
        **options: the options ``shard_bytes``, ``profile``, ``overwrite``, ``threads``, ``bf16``, ``casts``, ``skip``,
            ``shapes`` and ``null_elements`` of ``tensilo.convert``.

    Returns:
        The ``Dataset``.

    Raises:
        ImportError: ``datasets`` is not installed.
        TypeError: ``dataset`` has several splits, or is a streaming dataset.
        InputError: values cannot be stored.
        FileExistsError: the output exists.
    """
    try:
        import datasets
        import pyarrow as pa
        from datasets.table import embed_table_storage
    except ImportError as error:
        raise ImportError("from_hf needs datasets: pip install datasets") from error
    if isinstance(dataset, dict):
        split = next(iter(dataset), "train")
        raise TypeError(f"the dataset has several splits: pass one of them, such as dataset[{split!r}]")
    if not isinstance(dataset, datasets.Dataset):
        kind = type(dataset).__name__
        raise TypeError(f"expected a datasets.Dataset, found {kind}; for a streaming dataset, use from_iterable")
    check_output(output, options)
    if columns is not None:
        dataset = dataset.select_columns([columns] if isinstance(columns, str) else list(columns))
    batches = dataset.with_format("arrow").iter(_BATCH_SAMPLES)
    first = next(batches, None)
    if first is None:
        raise refused("there are no samples")
    failed: list[BaseException] = []
    with progress_callback(progress) as show:

        def read():
            done = 0
            try:
                for batch in chain([first], batches):
                    yield from embed_table_storage(batch).to_batches()
                    done += len(batch)
                    if show is not None:
                        show("reading", done, len(dataset))
            except BaseException as error:
                failed.append(error)  # an Arrow stream passes on only the message
                raise

        schema = embed_table_storage(first.slice(0, 0)).schema
        schema = schema.with_metadata({**(schema.metadata or {}), **(metadata or {})})
        try:
            return convert(pa.RecordBatchReader.from_batches(schema, read()), output, progress=show or False, **options)
        except Exception:
            if failed:
                raise failed[0] from None
            raise
