"""Datasets of the library ``datasets``."""

from itertools import chain

from .._convert import convert
from .._progress import progress_callback
from ._samples import check_output
from ._schema import refused

_BATCH_SAMPLES = 1000


def from_hf(dataset, output, *, columns=None, metadata=None, progress=False, **options):
    """Writes a ``datasets.Dataset`` from its Arrow data, and opens the result.

    Nothing is decoded: an image or audio column "image" becomes the columns "image.bytes" and "image.path",
    and files that it names are read into "image.bytes". Structs become columns of their fields, with dots
    between the names. Shapes are found by a pass over all samples, as ``tensilo.convert`` does. Formats and
    transforms of the dataset do not apply.

    The Arrow data go through an unnamed temporary file in the folder of the output, so that memory holds a
    batch.

    Args:
        dataset: a ``datasets.Dataset``, such as ``load_dataset(name, split="train")`` returns.
        output: a file, or a folder for a dataset, see ``from_iterable``.
        columns: the columns of ``dataset`` to store; all by default.
        metadata: a dict of texts.
        progress: True for a line on the standard error, or a function of phase, done and total.
        options: those of ``tensilo.convert``: ``shard_bytes``, ``profile``, ``overwrite``, ``threads``,
            ``bf16``, ``casts``, ``skip``, ``shapes``, ``null_elements``.

    Returns:
        The ``Dataset``.

    Raises:
        ImportError: ``datasets`` is not installed.
        TypeError: several splits, or a dataset that streams.
        InputError: values that cannot be stored.
        FileExistsError: the output is there.
    """
    try:
        import datasets
        import pyarrow as pa
        from datasets.table import embed_table_storage
    except ImportError as error:
        raise ImportError("from_hf needs datasets: pip install datasets") from error
    if isinstance(dataset, dict):
        split = next(iter(dataset), "train")
        raise TypeError(f"several splits: pass one of them, such as dataset[{split!r}]")
    if not isinstance(dataset, datasets.Dataset):
        kind = type(dataset).__name__
        raise TypeError(f"{kind} is no datasets.Dataset; from_iterable takes one that streams")
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
                failed.append(error)  # the stream has its text only
                raise

        schema = embed_table_storage(first.slice(0, 0)).schema
        schema = schema.with_metadata({**(schema.metadata or {}), **(metadata or {})})
        try:
            return convert(pa.RecordBatchReader.from_batches(schema, read()), output, progress=show or False, **options)
        except Exception:
            if failed:
                raise failed[0] from None
            raise
