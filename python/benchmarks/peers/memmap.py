"""NumPy memmap: plain arrays, gathered by fancy indexing in a DataLoader's workers."""

import functools
import json
from pathlib import Path

import numpy as np

from .common import Row
from .tensors import empty, stack, torch_loader


class Memmap(Row):
    name = "memmap"
    needs = {"numpy": "numpy"}
    orders = {"sequential": "in order", "shuffled": "any sample after any other"}

    def write(self, source, folder):
        for column in source.columns:
            if column.dtype == "text":
                texts = [sample for batch in source.batches() for sample in batch[column.name]]
                (Path(folder) / f"{column.name}.json").write_text(json.dumps(texts))
                continue
            np.save(f"{folder}/{column.name}.npy", source.values[column.name])
            np.save(f"{folder}/{column.name}.offsets.npy", source.offsets[column.name])

    def loader(self, folder, spec):
        return torch_loader(_Dataset(folder, spec.columns), spec)


class _Dataset:
    """Opens its files when a worker first reads."""

    def __init__(self, folder, columns):
        self.folder, self.columns = folder, columns
        self.count = len(np.load(f"{folder}/{columns[0].name}.offsets.npy", mmap_mode="r")) - 1

    def __len__(self):
        return self.count

    @functools.cached_property
    def files(self):
        files = {}
        for column in self.columns:
            if column.dtype == "text":
                files[column.name] = json.loads((Path(self.folder) / f"{column.name}.json").read_text())
                continue
            values = np.load(f"{self.folder}/{column.name}.npy", mmap_mode="r")
            if column.is_ragged:
                files[column.name] = values, np.load(f"{self.folder}/{column.name}.offsets.npy")
            else:
                files[column.name] = values.reshape(self.count, *column.shape)
        return files

    def __getitems__(self, indices):
        return {column.name: self._read(column, indices) for column in self.columns}

    def _read(self, column, indices):
        file = self.files[column.name]
        if column.dtype == "text":
            return [file[i] for i in indices]
        if column.is_ragged:
            values, offsets = file
            shape = (-1, *column.shape[1:])
            return stack([values[offsets[i] : offsets[i + 1]].reshape(shape) for i in indices], column)
        array, tensor = empty(len(indices), column.shape, column)
        # Without a mode, take fills a buffer first.
        np.take(file, indices, axis=0, out=array, mode="clip")
        return tensor


ROWS = [Memmap()]
