"""Maps dtype names to NumPy dtypes."""

_NAMES = {
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    **{f"{kind[0]}{bits}": f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}


def numpy_dtype(dtype):
    """Returns the NumPy dtype for a name such as "bf16" or "float32", or for a NumPy or PyTorch dtype.

    Raises:
        ImportError: NumPy is not installed, or the dtype is bf16 and ml_dtypes is not installed.
    """
    try:
        import numpy as np
    except ImportError as error:
        raise ImportError("arrays need NumPy: pip install 'tensilo[numpy]'") from error
    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", str(dtype))
    name = name.removeprefix("torch.")
    if name not in ("bf16", "bfloat16"):
        return np.dtype(_NAMES.get(name, name))
    try:
        import ml_dtypes
    except ImportError as error:
        raise ImportError("NumPy has no dtype for bf16: pip install ml_dtypes") from error
    return np.dtype(ml_dtypes.bfloat16)
