"""``from_mds``: imports MDS shards of mosaicml-streaming, without that package."""

import json
import os
import struct

from ._mds_shard import ShardBytes
from ._mds_values import decoder
from ._samples import as_names, check_output, write_samples
from ._schema import malformed, refused


def from_mds(
    folder,
    output,
    *,
    allow_pickle=False,
    schema=None,
    columns=None,
    infer_samples=1024,
    progress=False,
    **options,
):
    """Writes the samples of MDS shards in order, and opens the result.

    The shards are read without the package ``streaming``, with all encodings of MDS version 2 and all compressions.
    Encoded images (jpeg, png) stay bytes; raw images (pil) become u8 tensors of height, width and channels; json and
    str_decimal become utf8. Memory holds one batch, and a whole shard if it is compressed.

    Args:
        folder (path): the folder that contains ``index.json``; if there are splits, the folder of a split.
        output (path): a file, or a folder for a dataset; see ``from_iterable``.
        allow_pickle (bool, optional): whether to unpickle columns of the encoding "pkl". Unpickling can run arbitrary
            code, so only do this with data that you trust. Default: False.
        schema (dict, optional): the types of some columns. Default: all types are inferred, as in ``from_iterable``.
        columns (list of str, optional): the columns to store. Default: all columns.
        infer_samples (int, optional): the number of samples from which types are inferred. Default: 1024.
        progress (bool or callable, optional): True to show progress on standard error, or a function that is called
            with ``(phase, done, total)``. Default: False.
        **options: options of ``tensilo.Writer``.

    Returns:
        The ``Dataset``.

    Raises:
        InputError: a shard is malformed, or has a pickled column.
        ImportError: a shard is compressed, and the package that decompresses it is not installed.
        FileNotFoundError: the index or a shard is missing.
        FileExistsError: the output exists.
    """
    check_output(output, options)
    index, columns = os.path.join(folder, "index.json"), as_names(columns)
    with malformed("the index", index), open(index, encoding="utf-8") as file:
        found = json.load(file)
        shards = found.get("shards", [])
        for shard in shards:
            kind = (found.get("version"), shard.get("format"))
            if kind != (2, "mds"):
                raise refused(f"expected format 'mds' version 2, found {kind[1]!r} version {kind[0]}", path=index)
        total = sum(shard["samples"] for shard in shards)
    return write_samples(
        (sample for shard in shards for sample in _samples(folder, shard, columns, allow_pickle)),
        output,
        schema=schema,
        columns=columns,
        infer_samples=infer_samples,
        total=total,
        progress=progress,
        options=options,
    )


def _samples(folder, shard, columns, allow_pickle):
    """Yields the samples of a shard.

    A shard starts with the number of samples and their offsets, all u32. A JSON header and the samples follow. A sample
    starts with the sizes of the values that do not have a fixed size, all u32. All values of the sample follow.
    """
    decoders = []
    with malformed("the index", os.path.join(folder, "index.json")):
        names, sizes = shard["column_names"], shard["column_sizes"]
        for name, encoding in zip(names, shard["column_encodings"], strict=True):
            is_requested = columns is None or name in columns
            decoders.append(decoder(name, encoding, allow_pickle) if is_requested else None)
        path = os.path.join(folder, shard["raw_data"]["basename"])
    with ShardBytes(path, folder, shard) as data:
        count = shard["samples"]
        if len(data) < 4 * (count + 2) or struct.unpack_from("<I", data)[0] != count:
            raise refused(f"the index lists {count} samples, but the shard has a different number", path=path)
        varying = struct.Struct(f"<{sum(not size for size in sizes)}I")
        for i in range(count):
            start, end = struct.unpack_from("<2I", data, 4 * (i + 1))
            if not start + varying.size <= end <= len(data):
                raise refused(f"sample {i} is outside the shard", path=path)
            own = iter(varying.unpack_from(data, start))
            position, sample = start + varying.size, {}
            for name, fixed, decode in zip(names, sizes, decoders, strict=True):
                size = fixed or next(own)
                if decode is not None and position + size <= end:
                    with malformed(f"sample {i}", path, column=name):
                        sample[name] = decode(bytes(data[position : position + size]))
                position += size
            if position != end:
                text = f"sample {i} has {end - start} bytes, but its values end at {position - start}"
                raise refused(text, path=path)
            yield sample
