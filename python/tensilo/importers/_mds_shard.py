"""Maps or decompresses MDS shards."""

import mmap
import os
from importlib import import_module

from ._schema import refused

# for each compression: modules with a function `decompress`, in order of preference, and the package to install
_MODULES = {
    "gz": (("gzip",), None),
    "bz2": (("bz2",), None),
    "zstd": (("zstandard", "zstd"), "zstandard"),
    "br": (("brotli",), "brotli"),
    "snappy": (("snappy",), "python-snappy"),
}


class ShardBytes:
    """The bytes of a shard. An uncompressed shard is mapped."""

    def __init__(self, path, folder, shard):
        if os.path.exists(path) or not shard.get("zip_data"):
            if not os.path.getsize(path):
                raise refused("the shard is empty", path=path)
            with open(path, "rb") as file:
                self._data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        else:
            zipped = os.path.join(folder, shard["zip_data"]["basename"])
            with open(zipped, "rb") as file:
                self._data = _decompress(shard["compression"].split(":")[0], file.read(), zipped)

    def __enter__(self):
        return self._data

    def __exit__(self, *_):
        if isinstance(self._data, mmap.mmap):
            self._data.close()


def _decompress(kind, data, path):
    if kind not in _MODULES:
        raise refused(f"unknown compression {kind!r}", path=path)
    modules, package = _MODULES[kind]
    for module in modules:
        try:
            return import_module(module).decompress(data)
        except ImportError:
            pass
    raise ImportError(f"shards compressed with {kind} need another package: pip install {package}")
