"""MDS shards of mosaicml-streaming."""

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
    """Writes the samples of MDS shards in their order, and opens the result.

    The shards are read without the package ``streaming``: all encodings of its version 2, and shards that
    are compressed. Images stay the bytes that they are (jpeg, png); raw images (pil) become u8 tensors of
    height, width and channels; json and str_decimal become utf8. Memory holds a batch, and a shard if it is
    compressed.

    Args:
        folder: the folder with ``index.json``: that of a split, if there are splits.
        output: a file, or a folder for a dataset, see ``from_iterable``.
        allow_pickle: whether columns of the encoding "pkl" are unpickled, which runs any code that they
            have. They must be of data that you trust.
        schema: types of columns; those of others are found as in ``from_iterable``.
        columns: the columns to store; all by default.
        infer_samples: the number of the first samples that types are found from.
        progress: True for a line on the standard error, or a function of phase, done and total.
        options: those of ``tensilo.Writer``.

    Returns:
        The ``Dataset``.

    Raises:
        InputError: a shard is malformed, or has a column that is pickled.
        ImportError: a shard is compressed, and the package for that is not installed.
        FileNotFoundError: the folder has no index, or not all of its shards.
        FileExistsError: the output is there.
    """
    check_output(output, options)
    index, columns = os.path.join(folder, "index.json"), as_names(columns)
    with malformed("the index", index), open(index, encoding="utf-8") as file:
        found = json.load(file)
        shards = found.get("shards", [])
        for shard in shards:
            kind = (found.get("version"), shard.get("format"))
            if kind != (2, "mds"):
                raise refused(f"version {kind[0]} of format {kind[1]!r}, not version 2 of 'mds'", path=index)
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

    A shard is the number of samples and their offsets, each a u32, a text of JSON, and the samples. Each
    is the sizes of values without a fixed size, as u32, and the values.
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
            raise refused(f"the shard does not have the {count} samples of the index", path=path)
        varying = struct.Struct(f"<{sum(not size for size in sizes)}I")
        for i in range(count):
            start, end = struct.unpack_from("<2I", data, 4 * (i + 1))
            if not start + varying.size <= end <= len(data):
                raise refused(f"sample {i} is not in the shard", path=path)
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
