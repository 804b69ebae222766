"""``blosc_decoder``: decodes Blosc-compressed tensors in key-value stores."""

import struct
from importlib import import_module

from ._bits import numpy_dtype

_HEADER_BYTES = 16
_FRAME = b"b2frame\0"


def blosc_decoder(shape, dtype):
    """Returns a function for ``from_lmdb`` that decodes one Blosc-compressed tensor per value.

    A value is the output of ``compress`` or ``compress2`` of ``blosc`` or ``blosc2``, or a Blosc2 frame.

    Args:
        shape (tuple): the shape of a tensor. One extent can be None; it is computed from the number of bytes.
        dtype (str or dtype): the dtype of the elements, such as "bf16" or "float32".

    Raises:
        ImportError: neither ``blosc2`` nor ``blosc`` is installed, or ``dtype`` is bf16 and ``ml_dtypes`` is not
            installed.
    """
    return _BloscDecoder(tuple(shape), numpy_dtype(dtype))


class _BloscDecoder:
    def __init__(self, shape, dtype):
        if shape.count(None) > 1:
            raise ValueError(f"shape {shape}: at most one extent can be None")
        self._shape = tuple(-1 if extent is None else extent for extent in shape)
        self._dtype = dtype
        self._decompress = _decompressor()

    def __call__(self, value):
        import numpy as np

        if value[2:10] == _FRAME:
            raw = _frame(value)
        else:
            # the Blosc header has the compressed size at offset 12
            if len(value) < _HEADER_BYTES or struct.unpack_from("<I", value, 12)[0] != len(value):
                raise ValueError(f"a value of {len(value)} bytes is not a Blosc-compressed tensor")
            raw = self._decompress(value)
        if raw[:1] == b"\x80" and b"numpy" in raw[:64]:
            raise ValueError("the value is a pickled array; pass decode=blosc.unpack_array if you trust the data")
        try:
            return np.frombuffer(raw, self._dtype).reshape(self._shape)
        except ValueError as error:
            shape = tuple(None if extent == -1 else extent for extent in self._shape)
            text = f"{len(raw)} bytes do not form a {self._dtype} tensor of shape {shape}: {error}"
            raise ValueError(text) from None


def _decompressor():
    for package in ("blosc2", "blosc"):
        try:
            return import_module(package).decompress
        except ImportError:
            pass
    raise ImportError("blosc_decoder needs blosc2 or blosc: pip install blosc2")


def _frame(value):
    try:
        import blosc2
    except ImportError as error:
        raise ImportError("Blosc2 frames need blosc2: pip install blosc2") from error
    return blosc2.schunk_from_cframe(value)[:]
