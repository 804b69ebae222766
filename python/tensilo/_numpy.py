"""Arrays of NumPy."""

import numpy as np


def to_numpy(array, dtype=None, view=None):
    """Returns an array that shares the memory of an ``Array``, or a copy of another type."""
    if view is not None:
        if dtype is not None:
            raise ValueError("dtype converts and view keeps the bytes: pass one of them")
        return np.asarray(array.view(view))
    if array.dtype == "bf16":
        return _of_bf16(array, dtype)
    shared = np.asarray(array)
    return shared if dtype is None else shared.astype(dtype, copy=False)


def to_array(array, dtype=None, copy=None):
    """Returns what ``np.asarray`` and ``np.array`` ask for."""
    result = to_numpy(array, dtype)
    shares = array.dtype != "bf16" or dtype is None
    if copy is False and not shares:
        raise ValueError("bf16 cannot become another type without a copy")
    return result.copy() if copy and shares else result


def of_objects(samples):
    """Returns an array of objects, of one dimension."""
    array = np.empty(len(samples), dtype=object)
    array[:] = samples
    return array


def _of_bf16(array, dtype):
    bits = np.asarray(array.view("u16"))
    if dtype is not None and np.dtype(dtype).name != "bfloat16":
        # exact: bf16 is the upper half of a float32
        wide = (bits.astype(np.uint32) << 16).view(np.float32)
        return wide.astype(dtype, copy=False)
    return bits.view(_bfloat16())


def _bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            'NumPy has no bf16 of its own: install ml_dtypes, or use numpy(dtype="float32"), which is exact, '
            'or numpy(view="uint16") for the bits'
        ) from None
    return np.dtype(ml_dtypes.bfloat16)
