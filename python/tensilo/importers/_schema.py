"""Infers column types from samples.

``plain`` first converts each value to a form that the writer accepts. ``find_type`` then finds the narrowest common
type. Python numbers become bool, i64, u64 or f64, and arrays keep their dtype. An extent that differs between samples
varies in the type.
"""

import struct
import sys
from collections.abc import Mapping
from contextlib import contextmanager
from pickle import PickleError

from .. import _tensilo
from .._errors import InputError

_PLAIN = {bool, int, float, str, bytes, type(None)}
_MAX_I64 = 2**63 - 1
_MAX_EXACT_F64 = 2**53
# errors that decoders raise on malformed bytes
_MALFORMED = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    PickleError,
    TypeError,
    ValueError,
    struct.error,
)


def refused(text, *, column=None, path=None):
    """Returns the exception for an input that cannot be stored."""
    where = "".join([f"{path}: " if path else "", f"column {column!r}: " if column is not None else ""])
    error = InputError(where + text)
    error.column, error.path = column, path
    return error


@contextmanager
def malformed(what, path, *, column=None):
    """Turns every error that malformed bytes can cause into an ``InputError``."""
    try:
        yield
    except InputError:
        raise
    except _MALFORMED as error:
        raise refused(f"{what} is malformed: {type(error).__name__}: {error}", column=column, path=path) from error


def plain(value):
    """Returns a value in a form that a writer accepts.

    Raises:
        TypeError: the value has a type that cannot be stored.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, (list, tuple)):
        return value if set(map(type, value)) <= _PLAIN else [plain(member) for member in value]
    if isinstance(value, (str, bytes)):
        return value
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    torch, np = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return value.detach().cpu().resolve_neg()
    if np is not None and isinstance(value, (np.ndarray, np.generic)):
        return _plain_array(np, value)
    if all(hasattr(value, name) for name in ("__dlpack__", "dtype", "shape")):
        return value
    name = type(value).__name__
    raise TypeError(f"{name} cannot be stored: convert it to an array, number, str, bytes, or a list or dict of these")


def _plain_array(np, array):
    if isinstance(array, np.ma.MaskedArray):
        raise TypeError("a masked array cannot be stored: fill it, or convert it to a list with None")
    kind = array.dtype.kind
    if kind in "UST":
        return array.tolist()
    if kind == "O":
        raise TypeError("an object array cannot be stored: convert it to a list, or to an array of numbers")
    if kind in "Mm":
        raise TypeError(f'an array of {array.dtype} cannot be stored: pass array.astype("int64")')
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def find_type(values):
    """Returns the type of a column with these values, which ``plain`` must have converted.

    If an extent differs between values, it varies in the type. Lists of numbers are tensors if they are rectangular
    and contain no None; otherwise they are lists.

    Raises:
        TypeError, ValueError: the values have no common type.
    """
    nullable = any(value is None for value in values)
    values = [value for value in values if value is not None]
    kinds = {_kind(value) for value in values}
    if kinds == {"str"}:
        return _tensilo.utf8(nullable=nullable)
    if kinds == {"bytes"}:
        return _tensilo.binary(nullable=nullable)
    if kinds == {"array"}:
        dtypes = {str(value.dtype): value.dtype for value in values}
        if len(dtypes) > 1:
            raise TypeError(f"arrays of different types: {', '.join(sorted(dtypes))}")
        return _tensor(dtypes.popitem()[1], {tuple(value.shape) for value in values}, nullable)
    if kinds == {"list"}:
        return _lists(values, nullable)
    if not kinds:
        raise ValueError("there is no value to infer the type from")
    return _tensor(_number_type(kinds, values), {()}, nullable)


def _kind(value):
    if isinstance(value, (str, bytes)):
        return "str" if isinstance(value, str) else "bytes"
    if isinstance(value, (list, tuple)):
        return "list"
    return "array" if hasattr(value, "dtype") else type(value).__name__


def _number_type(kinds, numbers):
    if kinds == {"bool"}:
        return "bool"
    if kinds == {"int"}:
        return "u64" if max(numbers) > _MAX_I64 else "i64"
    if kinds <= {"int", "float"}:
        if any(abs(number) > _MAX_EXACT_F64 for number in numbers if isinstance(number, int)):
            raise TypeError("int and float values, with integers that f64 cannot hold exactly")
        return "f64"
    raise TypeError(f"values of different types: {', '.join(sorted(kinds))}")


def _lists(values, nullable):
    """Returns the type of lists: a tensor if they are rectangular and contain numbers, else a list."""
    numbers = []
    shapes = {_shape(value, numbers) for value in values}
    # the dimensions inside an empty list are unknown
    ranks = {len(shape) for shape in shapes if shape is not None and shape != (0,)}
    if None not in shapes and len(ranks) == 1 and numbers:
        return _tensor(_number_type({_kind(number) for number in numbers}, numbers), shapes, nullable)
    return _tensilo.list_(find_type([member for value in values for member in value]), nullable=nullable)


def _shape(value, numbers):
    """Returns the shape of nested lists, or None if they are not rectangular. Appends their numbers to ``numbers``."""
    if type(value) in (bool, int, float):
        numbers.append(value)
        return ()
    if not isinstance(value, (list, tuple)):
        return None
    inner = {_shape(member, numbers) for member in value}
    if not inner:
        return (0,)
    return None if len(inner) > 1 or None in inner else (len(value), *inner.pop())


def _tensor(dtype, shapes, nullable):
    """Returns the type of tensors with these shapes. The shape (0,) can be an empty list of any rank."""
    whole = {shape for shape in shapes if shape != (0,)} or shapes
    if len({len(shape) for shape in whole}) > 1:
        shortest, longest = min(whole, key=len), max(whole, key=len)
        raise ValueError(f"arrays of different ranks, such as {shortest} and {longest}")
    first = {shape[0] for shape in shapes if shape}
    others = [set(extents) for extents in zip(*whole, strict=True)][1:]
    extents = [first, *others] if first else []
    shape = tuple(found.copy().pop() if len(found) == 1 else None for found in extents)
    return _tensilo.tensor(dtype, shape, nullable=nullable)
