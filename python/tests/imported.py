"""Helpers shared by the tests of importers."""

import os

import numpy as np
import pytest

import tensilo as ts

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16 = np.dtype(ml_dtypes.bfloat16)
# quiet NaN with a payload, infinity, negative zero, a subnormal
ODD_F32 = np.array([0x7FC12345, 0x7F800000, 0x80000000, 0x00000001], np.uint32).view(np.float32)
ODD_BF16 = np.array([0x7FC1, 0xFF80, 0x8000, 0x0001], np.uint16).view(BF16)


def bits(value):
    """Returns the dtype, shape and bytes of an array."""
    if isinstance(value, ts.Array):
        value = value.numpy() if value.dtype != "bf16" else value.numpy(view="uint16").view(BF16)
    value = np.asarray(value)
    return str(value.dtype), value.shape, value.tobytes()


def files(folder):
    """Returns all files below a folder."""
    return [name for _, _, names in os.walk(folder) for name in names]


def failing(samples):
    yield from samples
    raise RuntimeError("the source is broken")
