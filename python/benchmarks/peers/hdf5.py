"""h5py with hdf5plugin: chunked datasets, compressed by bit-shuffle and Zstd."""

import functools

import numpy as np

from .common import Row
from .tensors import empty, stack, torch_loader

CHUNK_BYTES = 16 << 10


class Hdf5(Row):
    name = "hdf5"
    needs = {"h5py": "h5py", "hdf5plugin": "hdf5plugin"}
    compresses = True
    orders = {"sequential": "in order", "shuffled": "any sample after any other"}

    def write(self, source, folder):
        import h5py
        import hdf5plugin

        with h5py.File(f"{folder}/data.h5", "w", libver="latest") as file:
            for column in source.columns:
                if column.dtype == "text":
                    texts = [text for batch in source.batches() for text in batch[column.name]]
                    file.create_dataset(column.name, data=texts, dtype=h5py.string_dtype())
                    continue
                values, offsets = source.values[column.name], source.offsets[column.name]
                inner = tuple(column.shape[1:]) if column.is_ragged else tuple(column.shape)
                values = values.reshape(-1, *inner)
                row_bytes = values.itemsize * int(np.prod(inner))
                dataset = file.create_dataset(
                    column.name,
                    values.shape,
                    values.dtype,
                    chunks=(min(max(CHUNK_BYTES // row_bytes, 1), len(values)), *inner),
                    compression=hdf5plugin.Bitshuffle(cname="zstd", clevel=9),
                )
                step = dataset.chunks[0] * 256
                for start in range(0, len(values), step):
                    dataset[start : start + step] = values[start : start + step]
                if column.is_ragged:
                    file[f"{column.name}.offsets"] = offsets // int(np.prod(inner))
            file.attrs["count"] = len(source)

    def loader(self, folder, spec):
        return torch_loader(_Dataset(f"{folder}/data.h5", spec.columns), spec)


class _Dataset:
    """Opens the file in the worker that reads: HDF5's handles do not survive a fork."""

    def __init__(self, path, columns):
        import h5py

        self.path, self.columns = path, columns
        with h5py.File(path) as file:
            self.count = int(file.attrs["count"])

    def __len__(self):
        return self.count

    @functools.cached_property
    def file(self):
        import h5py
        import hdf5plugin  # noqa: F401 - registers the filters

        return h5py.File(self.path, rdcc_nbytes=64 << 20, rdcc_nslots=100003)

    @functools.cached_property
    def datasets(self):
        return {column.name: self.file[column.name] for column in self.columns}

    @functools.cached_property
    def offsets(self):
        return {column.name: self.file[f"{column.name}.offsets"][:] for column in self.columns if column.is_ragged}

    def __getitems__(self, indices):
        return {column.name: self._read(column, indices) for column in self.columns}

    def _read(self, column, indices):
        dataset = self.datasets[column.name]
        if column.dtype == "text":
            return [dataset[i].decode() for i in indices]
        if column.is_ragged:
            offsets = self.offsets[column.name]
            return stack([dataset[offsets[i] : offsets[i + 1]] for i in indices], column)
        array, tensor = empty(len(indices), column.shape, column)
        if indices[-1] - indices[0] == len(indices) - 1 and self._is_range(indices):
            dataset.read_direct(array, np.s_[indices[0] : indices[-1] + 1])
            return tensor
        # One selection per sample is faster than a list, for which HDF5 builds a union of
        # hyperslabs.
        for row, i in zip(array, indices, strict=True):
            dataset.read_direct(row, np.s_[i])
        return tensor

    @staticmethod
    def _is_range(indices):
        return indices == list(range(indices[0], indices[0] + len(indices)))


ROWS = [Hdf5()]
