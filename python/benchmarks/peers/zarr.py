"""Zarr 3: arrays of chunks in shards, compressed with Blosc's bit-shuffle and Zstd."""

import functools

import numpy as np

from .common import Row
from .tensors import empty, stack, torch_loader

CHUNK_BYTES = 32 << 10
SHARD_BYTES = 64 << 20


class Zarr(Row):
    name = "zarr"
    needs = {"zarr": "zarr"}
    compresses = True
    orders = {"sequential": "in order", "shuffled": "any sample after any other"}

    def write(self, source, folder):
        import zarr

        group = zarr.open_group(f"{folder}/data.zarr", mode="w")
        group.attrs["count"] = len(source)
        for column in source.columns:
            inner = tuple(column.shape[1:]) if column.is_ragged else tuple(column.shape)
            values = source.values[column.name].reshape(-1, *inner)
            row_bytes = max(values.itemsize * int(np.prod(inner)), 1)
            chunk = max(CHUNK_BYTES // row_bytes, 1)
            shard = chunk * max(min(SHARD_BYTES, values.nbytes) // (chunk * row_bytes), 1)
            array = group.create_array(
                column.name,
                shape=values.shape,
                dtype=values.dtype,
                chunks=(chunk, *inner),
                shards=(shard, *inner),
                compressors=zarr.codecs.BloscCodec(cname="zstd", clevel=5, shuffle="bitshuffle"),
            )
            for start in range(0, len(values), shard):
                array[start : start + shard] = values[start : start + shard]
            if column.is_ragged or column.dtype == "text":
                offsets = source.offsets[column.name] // int(np.prod(inner))
                group.create_array(f"{column.name}.offsets", data=offsets)

    def loader(self, folder, spec):
        # Zarr has an event loop on a thread, which does not survive a fork.
        dataset = _Dataset(f"{folder}/data.zarr", spec.columns)
        return torch_loader(dataset, spec, multiprocessing_context="spawn")


class _Dataset:
    def __init__(self, path, columns):
        import zarr

        self.path, self.columns = path, columns
        self.count = zarr.open_group(path, mode="r").attrs["count"]

    def __len__(self):
        return self.count

    @functools.cached_property
    def arrays(self):
        import zarr

        group = zarr.open_group(self.path, mode="r")
        varying = [column for column in self.columns if column.is_ragged or column.dtype == "text"]
        offsets = {f"{column.name}.offsets": group[f"{column.name}.offsets"][:] for column in varying}
        return {column.name: group[column.name] for column in self.columns} | offsets

    def __getitems__(self, indices):
        return {column.name: self._read(column, indices) for column in self.columns}

    def _read(self, column, indices):
        array = self.arrays[column.name]
        if column.is_ragged or column.dtype == "text":
            offsets = self.arrays[f"{column.name}.offsets"]
            values = [array[offsets[i] : offsets[i + 1]] for i in indices]
            return [value.tobytes().decode() for value in values] if column.dtype == "text" else stack(values, column)
        out, tensor = empty(len(indices), column.shape, column)
        # Sorted, so that each chunk is decoded once.
        order = np.argsort(indices)
        out[order] = array.oindex[np.asarray(indices)[order]]
        return tensor


ROWS = [Zarr()]
