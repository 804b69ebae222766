"""Arbitrary tables, and the comparison of samples."""

import math

from hypothesis import strategies as st

from conftest import optional

pa = optional("pyarrow")

NUMBERS = {
    pa.int8(): st.integers(-(2**7), 2**7 - 1),
    pa.int32(): st.integers(-(2**31), 2**31 - 1),
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.uint16(): st.integers(0, 2**16 - 1),
    pa.uint64(): st.integers(0, 2**64 - 1),
    pa.float16(): st.floats(width=16),
    pa.float32(): st.floats(width=32),
    pa.float64(): st.floats(),
    pa.bool_(): st.booleans(),
}
STRINGS = {pa.string(): st.text(max_size=9), pa.binary(): st.binary(max_size=9), pa.large_string(): st.text(max_size=3)}


@st.composite
def tables(draw):
    """Tables of any columns that tensilo supports."""
    count = draw(st.integers(1, 30))
    arrays = {}
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["number", "string", "list", "fixed", "nested", "matrix"]))
        dtype = draw(st.sampled_from([*STRINGS] if kind in ("string", "nested") else [*NUMBERS]))
        value = {**NUMBERS, **STRINGS}[dtype]
        if kind == "list":
            dtype, value = pa.list_(dtype), st.lists(value, max_size=5)
        elif kind == "fixed":
            width = draw(st.integers(1, 4))
            dtype, value = pa.list_(dtype, width), st.lists(value, min_size=width, max_size=width)
        elif kind == "nested":
            dtype, value = pa.list_(dtype), st.lists(st.none() | value, max_size=3)
        elif kind == "matrix":
            rows = st.lists(st.lists(value, min_size=2, max_size=2), max_size=3)
            dtype, value = pa.list_(pa.list_(dtype)), rows
        is_nullable = draw(st.booleans())
        value = st.none() | value if is_nullable else value
        samples = draw(st.lists(value, min_size=count, max_size=count))
        arrays[f"c{number}"] = pa.array(samples, dtype)
    return pa.table(arrays)


def same(a, b):
    """Returns whether two samples are equal, where NaN equals NaN."""
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b and isinstance(a, bool) == isinstance(b, bool)
