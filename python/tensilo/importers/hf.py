"""Datasets of the library ``datasets``."""

import os
import tempfile

from .._convert import convert
from .._progress import shown
from ._samples import check_output
from ._schema import refused

_BATCH_SAMPLES = 1000


def from_hf(dataset, output, *, columns=None, metadata=None, progress=False, **options):
    """Writes a ``datasets.Dataset`` from its Arrow data, and opens the result.

    Nothing is decoded: an image or audio column "image" becomes the columns "image.bytes" and "image.path",
    and files that it names are read into "image.bytes". Structs become columns of their fields, with dots
    between the names. Shapes are found by a pass over all samples, as ``tensilo.convert`` does. Formats and
    transforms of the dataset do not apply.

    The Arrow data go through a temporary file in the folder of the output, so that memory holds a batch.

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
    parent = os.path.dirname(os.path.abspath(os.fsdecode(output).rstrip("/" + os.sep)))
    with shown(progress) as show, tempfile.TemporaryDirectory(prefix=".tensilo-", dir=parent) as folder:
        path = os.path.join(folder, "input.arrow")
        sink = None
        try:
            for batch in dataset.with_format("arrow").iter(_BATCH_SAMPLES):
                table = embed_table_storage(batch)
                if sink is None:
                    own = table.schema.metadata or {}
                    schema = table.schema.with_metadata({**own, **(metadata or {})})
                    sink, done = pa.ipc.new_stream(path, schema), 0
                sink.write_table(table.replace_schema_metadata(schema.metadata))
                done += len(table)
                if show is not None:
                    show("reading", done, len(dataset))
        finally:
            if sink is not None:
                sink.close()
        if sink is None:
            raise refused("there are no samples")
        return convert(path, output, progress=show or False, **options)
