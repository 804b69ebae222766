"""LMDB + Blosc: bf16 samples, each bit-shuffled and compressed with Zstd, in a DataLoader."""

import functools
import struct

from .common import Row
from .tensors import collate_bytes, torch_loader

KEY = struct.Struct(">I")


class LmdbBlosc(Row):
    name = "lmdb-blosc"
    needs = {"lmdb": "lmdb", "blosc2": "blosc2"}
    compresses = True
    orders = {"sequential": "in order", "shuffled": "any sample after any other"}

    def write(self, source, folder):
        import blosc2
        import lmdb

        blosc2.set_nthreads(1)
        size = sum(values.nbytes for values in source.values.values())
        env = lmdb.open(folder, map_size=3 * size + (1 << 28))
        with env.begin(write=True) as transaction:
            for i in range(len(source)):
                for number, column in enumerate(source.columns):
                    value = source.bytes_of(column, i)
                    if column.dtype != "text":
                        value = blosc2.compress(
                            value,
                            typesize=column.numpy_dtype.itemsize,
                            clevel=9,
                            filter=blosc2.Filter.BITSHUFFLE,
                            codec=blosc2.Codec.ZSTD,
                            _ignore_multiple_size=True,
                        )
                    transaction.put(KEY.pack(i * len(source.columns) + number), value, append=True)
        env.close()

    def loader(self, folder, spec):
        return torch_loader(_Dataset(folder, spec), spec)


class _Dataset:
    """Opens the environment in the worker that reads, as lmdb's documentation requires."""

    def __init__(self, folder, spec):
        import lmdb

        self.folder, self.columns, self.order = folder, spec.columns, spec.order
        with lmdb.open(folder, readonly=True, lock=False) as env:
            self.count = env.stat()["entries"] // len(self.columns)

    def __len__(self):
        return self.count

    @functools.cached_property
    def transaction(self):
        import blosc2
        import lmdb

        blosc2.set_nthreads(1)
        env = lmdb.open(self.folder, readonly=True, lock=False, readahead=self.order == "sequential")
        return env.begin(buffers=True)

    def __getitems__(self, indices):
        return collate_bytes([self._sample(i) for i in indices], self.columns)

    def _sample(self, i):
        import blosc2

        first = i * len(self.columns)
        values = [self.transaction.get(KEY.pack(first + number)) for number in range(len(self.columns))]
        return {
            column.name: value if column.dtype == "text" else blosc2.decompress(value)
            for column, value in zip(self.columns, values, strict=True)
        }


ROWS = [LmdbBlosc()]
