"""Converts ``Array`` to NumPy.

NumPy has no bf16, no 8-bit floats, and no 4-bit or 6-bit numbers. Arrays of these get a dtype from ml_dtypes. If that
package is not installed, the error names the conversions that work without it.
"""

try:
    import numpy as np
except ImportError as error:
    raise ImportError("NumPy is not installed: pip install 'tensilo[numpy]'") from error

# dtypes that NumPy lacks: their names in ml_dtypes, and the dtypes that hold their bits
_OF_ML_DTYPES = {
    "bf16": ("bfloat16", "u16"),
    "f8_e4m3fn": ("float8_e4m3fn", "u8"),
    "f8_e4m3fnuz": ("float8_e4m3fnuz", "u8"),
    "f8_e5m2": ("float8_e5m2", "u8"),
    "f8_e5m2fnuz": ("float8_e5m2fnuz", "u8"),
    "f8_e8m0fnu": ("float8_e8m0fnu", "u8"),
    "f6_e2m3": ("float6_e2m3fn", "u8"),
    "f6_e3m2": ("float6_e3m2fn", "u8"),
    "f4_e2m1": ("float4_e2m1fn", "u8"),
    "i4": ("int4", "u8"),
    "u4": ("uint4", "u8"),
}
_NAMES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
}


def to_numpy(array, dtype=None, view=None):
    """Returns a NumPy array that shares the memory of an ``Array``, or a copy if the dtype changes."""
    if view is not None:
        if dtype is not None:
            raise ValueError("dtype converts the values and view reinterprets the bytes: pass only one of them")
        return _shared(array.view(view))
    if array.dtype == "bf16":
        return _of_bf16(array, dtype)
    return _shared(array) if dtype is None else _shared(array).astype(_dtype(dtype), copy=False)


def to_array(array, dtype=None, copy=None):
    """Implements ``__array__`` for ``np.asarray`` and ``np.array``."""
    result = to_numpy(array, dtype)
    shares = np.shares_memory(result, _shared(_bits(array)))
    if copy is False and not shares and result.size:
        raise ValueError("converting the dtype needs a copy, but copy=False was passed")
    return result.copy() if copy and shares else result


def of_objects(samples):
    """Returns a one-dimensional object array."""
    array = np.empty(len(samples), dtype=object)
    array[:] = samples
    return array


def _shared(array):
    dtype = _dtype(array.dtype)
    array = _bits(array)
    return (
        np.frombuffer(memoryview(array), dtype=dtype).reshape(array.shape)
        if array.nbytes
        else np.empty(array.shape, dtype)
    )


def _dtype(dtype):
    """Returns the NumPy dtype with this name. Names of this package take precedence: "i8" has 8 bits, not 8 bytes."""
    name = dtype if isinstance(dtype, str) else ""
    for own, (other, _) in _OF_ML_DTYPES.items():
        if name in (own, other):
            return _of_ml_dtypes(own, other)
    return np.dtype(_NAMES.get(name, dtype))


def _bits(array):
    """Returns an array unchanged if NumPy has its dtype. Otherwise returns a view of its bits."""
    _, bits = _OF_ML_DTYPES.get(array.dtype, (None, None))
    return array.view(bits) if bits else array


def _of_bf16(array, dtype):
    if dtype is not None and _dtype(dtype).name != "bfloat16":
        # exact: bf16 is the upper half of a float32
        wide = (_shared(array.view("u16")).astype(np.uint32) << 16).view(np.float32)
        return wide.astype(_dtype(dtype), copy=False)
    return _shared(array)


def _of_ml_dtypes(own, other):
    try:
        import ml_dtypes
    except ImportError:
        ways = 'or use numpy(view="uint8") for the bits'
        if own == "bf16":
            ways = 'or use numpy(dtype="float32"), which is exact, or numpy(view="uint16") for the bits'
        raise TypeError(f"NumPy has no dtype for {own}: install ml_dtypes, {ways}") from None
    return np.dtype(getattr(ml_dtypes, other))
