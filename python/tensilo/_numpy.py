"""Arrays of NumPy."""

try:
    import numpy as np
except ImportError as error:
    raise ImportError("arrays of NumPy need NumPy: pip install 'tensilo[numpy]'") from error

_NAMES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def to_numpy(array, dtype=None, view=None):
    """Returns an array that shares the memory of an ``Array``, or a copy of another type."""
    if view is not None:
        if dtype is not None:
            raise ValueError("dtype converts and view keeps the bytes: pass one of them")
        return _shared(array.view(view))
    if array.dtype == "bf16":
        return _of_bf16(array, dtype)
    return _shared(array) if dtype is None else _shared(array).astype(_dtype(dtype), copy=False)


def to_array(array, dtype=None, copy=None):
    """Returns what ``np.asarray`` and ``np.array`` ask for."""
    result = to_numpy(array, dtype)
    shares = np.shares_memory(result, _shared(array.view("u16") if array.dtype == "bf16" else array))
    if copy is False and not shares and result.size:
        raise ValueError("another type needs a copy")
    return result.copy() if copy and shares else result


def of_objects(samples):
    """Returns an array of objects, of one dimension."""
    array = np.empty(len(samples), dtype=object)
    array[:] = samples
    return array


def _shared(array):
    dtype = _bfloat16() if array.dtype == "bf16" else np.dtype(_NAMES.get(array.dtype, array.dtype))
    if array.dtype == "bf16":
        array = array.view("u16")
    return (
        np.frombuffer(memoryview(array), dtype=dtype).reshape(array.shape)
        if array.nbytes
        else np.empty(array.shape, dtype)
    )


def _dtype(dtype):
    """Returns the type of NumPy. Names are those of this package first: "i8" has 8 bits."""
    name = dtype if isinstance(dtype, str) else ""
    return _bfloat16() if name in ("bf16", "bfloat16") else np.dtype(_NAMES.get(name, dtype))


def _of_bf16(array, dtype):
    if dtype is not None and _dtype(dtype).name != "bfloat16":
        # exact: bf16 is the upper half of a float32
        wide = (_shared(array.view("u16")).astype(np.uint32) << 16).view(np.float32)
        return wide.astype(_dtype(dtype), copy=False)
    return _shared(array)


def _bfloat16():
    try:
        import ml_dtypes
    except ImportError:
        raise TypeError(
            'NumPy has no bf16 of its own: install ml_dtypes, or use numpy(dtype="float32"), which is exact, '
            'or numpy(view="uint16") for the bits'
        ) from None
    return np.dtype(ml_dtypes.bfloat16)
