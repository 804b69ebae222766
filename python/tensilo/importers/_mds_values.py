"""Decodes the values of MDS shards, for all encodings of version 2."""

import struct

from ._bits import numpy_dtype
from ._schema import refused

_SCALARS = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
_SCALARS |= {"float16", "float32", "float64"}
_CODES = {
    8: "uint8",
    9: "int8",
    16: "uint16",
    17: "int16",
    18: "float16",
    32: "uint32",
    33: "int32",
    34: "float32",
    64: "uint64",
    65: "int64",
    66: "float64",
}
# the number of channels of PIL modes with 8 bits per channel
_CHANNELS = {"L": 1, "RGB": 3, "RGBA": 4, "CMYK": 4, "YCbCr": 3, "LAB": 3, "HSV": 3, "LA": 2}


def decoder(column, encoding, allow_pickle):
    """Returns a function that decodes the bytes of a value."""
    name, _, arguments = encoding.partition(":")
    if name in ("bytes", "jpeg", "png"):
        return bytes
    if name in ("str", "json", "str_decimal"):
        return _text
    if name == "int":
        return lambda data: struct.unpack("<q", data)[0]
    if name in _SCALARS:
        return _scalar(name)
    if name == "ndarray":
        return _array(*arguments.split(":")) if arguments else _array()
    if name in ("str_int", "str_float"):
        number = int if name == "str_int" else float
        return lambda data: number(_text(data))
    if name == "pil":
        return lambda data: _image(column, data)
    if name in ("jpeg_array", "jpegarray"):
        return lambda data: _members(data, 0)
    if name in ("list[jpeg]", "list[png]"):
        return lambda data: _members(data, 4)
    if name == "list[pil]":
        return lambda data: [_image(column, member) for member in _members(data, 4)]
    if name == "pkl":
        if not allow_pickle:
            ways = "leave the column out with columns=, or pass allow_pickle=True if you trust the data"
            raise refused(f"the values are pickled; {ways}", column=column)
        import pickle

        return pickle.loads
    raise refused(f"unknown MDS encoding {encoding!r}", column=column)


def _text(data):
    return data.decode("utf-8")


def _scalar(name):
    import numpy as np

    dtype = numpy_dtype(name)
    return lambda data: np.frombuffer(data, dtype, 1)[0]


def _array(dtype=None, shape=None):
    """Returns a decoder of arrays. If the dtype or the shape is None, the data contains it, before the elements."""
    import numpy as np

    known = None if dtype is None else numpy_dtype(dtype)
    extents = None if shape is None else tuple(map(int, shape.split(",")))

    def decode(data):
        position, dtype, shape = 0, known, extents
        if dtype is None:
            dtype, position = np.dtype(_CODES[data[0]]), 1
        if shape is None:
            # the two lowest bits are log2 of the bytes per extent, the others are the rank
            rank, width = data[position] >> 2, 1 << (data[position] & 3)
            numbers = np.frombuffer(data, f"<u{width}", rank, position + 1)
            shape, position = tuple(map(int, numbers)), position + 1 + rank * width
        return np.frombuffer(data, dtype, offset=position).reshape(shape)

    return decode


def _image(column, data):
    """Returns the pixels of a raw image. The shape is (height, width), plus channels if there are several."""
    import numpy as np

    width, height, length = struct.unpack_from("<3I", data)
    mode = data[12 : 12 + length].decode("ascii")
    if mode not in _CHANNELS:
        raise refused(f"images of mode {mode!r} do not fit u8 tensors; omit the column with columns=", column=column)
    channels = _CHANNELS[mode]
    shape = (height, width) if channels == 1 else (height, width, channels)
    return np.frombuffer(data, np.uint8, offset=12 + length).reshape(shape)


def _members(data, start):
    """Returns the members of a list. The data has their count and their sizes, all u32, and then the members."""
    (count,) = struct.unpack_from("<I", data, start)
    sizes = struct.unpack_from(f"<{count}I", data, start + 4)
    position, members = start + 4 + 4 * count, []
    for size in sizes:
        members.append(data[position : position + size])
        position += size
    if position != len(data):
        raise ValueError(f"the list has {len(data)} bytes, but its members end at {position}")
    return members
