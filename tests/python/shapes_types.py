"""Tables of every type in Arrow's documentation, with metadata of fields and schemas."""
import datetime
import decimal
import random

import numpy as np
import pyarrow as pa

from shapes_nested import one

TEXTS = ["b", "a", None, "", "a long text that does not fit into a view", "b"]
BYTES = [text and text.encode() for text in TEXTS]


def numbers():
    for data_type in (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()):
        bits = data_type.bit_width
        low, high = (0, 2**bits - 1) if str(data_type).startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        yield str(data_type), pa.array([low, None, high, 0, 1], data_type)
    for data_type in (pa.float16(), pa.float32(), pa.float64()):
        yield str(data_type), pa.array([0.0, -0.0, None, float("inf"), 1.5], data_type)
    yield "nan", pa.array([float("nan"), 1.0], pa.float64())
    yield "bool", pa.array([True, None, False])
    yield "null", pa.nulls(4)


def decimals():
    number = lambda digits, scale: decimal.Decimal(digits).scaleb(-scale, context=decimal.Context(prec=76))
    precisions = ((pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal128, 38), (pa.decimal256, 76))
    for make, precision in precisions:
        for digits, scale in ((precision, 2), (precision, 0), (1, 1), (precision, precision), (3, -2)):
            data_type = make(digits, scale)
            values = [number("9" * digits, scale), None, number("-" + "9" * digits, scale), number("0", scale)]
            yield str(data_type), pa.array(values, data_type)
    yield "decimals", pa.array([[number("125", 2), None], [], None], pa.list_(pa.decimal128(5, 2)))
    yield "decimals_of_2", pa.array([[number("125", 2)] * 2, None], pa.list_(pa.decimal256(40, 2), 2))


def times():
    for unit in ("s", "ms", "us", "ns"):
        for zone in (None, "UTC", "Europe/Zurich", "+05:30"):
            yield f"timestamp_{unit}_{zone}", pa.array([1_700_000_000, None, -1, 0], pa.timestamp(unit, zone))
        yield f"duration_{unit}", pa.array([5, None, -5], pa.duration(unit))
    yield "time32_s", pa.array([1, None], pa.time32("s"))
    yield "time32_ms", pa.array([1, None], pa.time32("ms"))
    yield "time64_us", pa.array([1, None], pa.time64("us"))
    yield "time64_ns", pa.array([1, None], pa.time64("ns"))
    yield "date32", pa.array([datetime.date(2020, 2, 29), None], pa.date32())
    yield "date64", pa.array([datetime.date(2020, 2, 29), None], pa.date64())
    yield "timestamps", pa.array([[1, None], [], None], pa.list_(pa.timestamp("ms", "UTC")))
    yield "seconds", pa.array([[1, None], [], None], pa.list_(pa.timestamp("s")))
    zoned = pa.timestamp("s", "Europe/Zurich")
    yield "seconds_in_lists", pa.array([[1, None], [], None], pa.list_(zoned))
    yield "seconds_in_structs", pa.array([{"a": 1}, {"a": None}, None], pa.struct([("a", zoned)]))
    yield "seconds_in_maps", pa.array([[("a", 1)], [], None], pa.map_(pa.string(), zoned))
    yield "durations_of_2", pa.array([[1, 2], None], pa.list_(pa.duration("us"), 2))
    yield "month_day_nano", pa.array([pa.MonthDayNano([1, 2, 3]), None], pa.month_day_nano_interval())


def texts():
    for data_type in (pa.string(), pa.large_string(), pa.string_view()):
        yield str(data_type), pa.array(TEXTS, data_type)
    for data_type in (pa.binary(), pa.large_binary(), pa.binary_view()):
        yield str(data_type), pa.array(BYTES, data_type)
    yield "fixed_size_binary", pa.array([b"ab", None, b"cd"], pa.binary(2))
    yield "fixed_size_binary_0", pa.array([b"", None, b""], pa.binary(0))
    yield "uuid", pa.array([bytes(range(16)), None], pa.uuid())
    yield "json", pa.array(['{"a": 1}', None], pa.json_())
    yield "bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8()))
    yield "opaque", pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "geometry", "someone"), pa.array(["a", None]))


def dictionaries():
    yield "dictionary", pa.array(TEXTS).dictionary_encode()
    keys = lambda data_type: pa.array([2, 0, None, 1, 2], data_type)
    of = lambda values, index=pa.int8(), **options: pa.DictionaryArray.from_arrays(keys(index), values, **options)
    for index in (pa.int8(), pa.uint8(), pa.int64(), pa.uint32()):
        yield f"dictionary_{index}", of(pa.array(["z", "y", "x"]), index)
    yield "dictionary_unused", of(pa.array(["z", "y", "x", "unused"], pa.large_string()))
    yield "dictionary_ordered", of(pa.array(["low", "mid", "high"]), ordered=True)
    yield "dictionary_twice", of(pa.array(["z", "y", "z"]))
    yield "dictionary_null", of(pa.array(["z", None, "x"]))
    yield "dictionary_ints", of(pa.array([5, -7, 9], pa.int64()))
    yield "dictionary_floats", of(pa.array([5.5, -7, 0], pa.float32()))
    yield "dictionary_bools", of(pa.array([True, False, True]))
    yield "dictionary_times", of(pa.array([1, 2, 3], pa.timestamp("us", "UTC")))
    yield "dictionary_decimals", of(pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2.50")]))
    some = [decimal.Decimal("1.25"), decimal.Decimal("-2.50"), decimal.Decimal("0.00")]
    for data_type in (pa.decimal128(5, 2), pa.decimal128(21, 2), pa.decimal256(60, 2)):
        yield f"dictionary_{data_type}", of(pa.array(some, data_type))
    yield "dictionary_halves", of(pa.array([5.5, -7, 0], pa.float16()))
    yield "dictionary_binaries", of(pa.array([b"a", b"", b"c"], pa.large_binary()))
    yield "dictionary_uuids", of(pa.array([bytes([i] * 16) for i in range(3)], pa.binary(16)))
    yield "dictionary_views", of(pa.array(["a", "b", "c"], pa.string_view()))
    yield "dictionary_lists", of(pa.array([[1, 2], [], None], pa.list_(pa.int32())))
    yield "dictionary_texts", of(pa.array([["a"], [], ["b", None]]))
    yield "dictionary_structs", of(pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": ""}]))
    yield "dictionary_maps", of(pa.array([[("a", 1)], [], None], pa.map_(pa.string(), pa.int8())))
    yield "dictionary_of_dictionaries", of(pa.array(["a", "b", "a"]).dictionary_encode())
    inner = pa.array(["a", None, "b", "a"]).dictionary_encode()
    yield "list_of_dictionaries", pa.ListArray.from_arrays([0, 2, 2, 4], inner)
    yield "struct_of_dictionaries", pa.StructArray.from_arrays([inner, pa.array([1, 2, 3, 4])], ["d", "n"])
    two = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array([True, False]))
    parts = [two, pa.array(["a", "b"], pa.large_string()), pa.array([[1.5, 2]] * 2, pa.list_(pa.float32(), 2))]
    fields = [pa.field(name, part.type, False, {"k": name}) for name, part in zip("dsv", parts)]
    yield "bools_in_structs", pa.StructArray.from_arrays(parts, fields=fields)
    yield "bools_in_lists", pa.LargeListArray.from_arrays(pa.array([0, 1, 2], pa.int64()), two)
    yield "bools_in_maps", pa.MapArray.from_arrays([0, 1, 2], pa.array(["a", "b"]), two)
    lists = pa.ListArray.from_arrays([0, 1, 2, 3, 5], of(pa.array([{"a": 1}, {"a": 2}, {"a": 3}])))
    yield "list_of_dictionaries_of_structs", lists
    yield "runs", pa.RunEndEncodedArray.from_arrays(pa.array([2, 3, 7], pa.int32()), pa.array([7, None, 8]))
    yield "runs_of_texts", pa.RunEndEncodedArray.from_arrays(pa.array([2, 7], pa.int16()), pa.array(["a", "b"]))
    yield "runs_of_structs", pa.RunEndEncodedArray.from_arrays(pa.array([2, 7], pa.int64()), pa.array([{"a": 1}, None]))


def tensors():
    fixed = lambda **options: pa.fixed_shape_tensor(pa.float32(), [2, 2], **options)
    values = pa.array([[1, 2, 3, 4], [5, 6, 7, 8], None], pa.list_(pa.float32(), 4))
    yield "tensor", pa.ExtensionArray.from_storage(fixed(), values)
    yield "tensor_names", pa.ExtensionArray.from_storage(fixed(dim_names=["H", "W"]), values)
    yield "tensor_numpy", pa.FixedShapeTensorArray.from_numpy_ndarray(np.arange(24, dtype=np.int16).reshape(2, 3, 4))


def described():
    """Yields fields and schemas with names and metadata of every kind."""
    element = pa.field("element", pa.float32(), False, {"unit": "m"})
    yield "element", one(pa.array([[1, 2], [3], []], pa.list_(element)))
    yield "array", one(pa.array([["a"], [None]], pa.list_(pa.field("array", pa.string(), True, {"k": "v"}))))
    child = pa.field("a", pa.int8(), False, {"k": "v", "unit": "m"})
    yield "struct_metadata", one(pa.array([{"a": 1}], pa.struct([child])), True, {"of": "the struct"})
    members = pa.list_(pa.field("e", pa.struct([child]), False, {"e": "1"}))
    yield "list_metadata", one(pa.array([[{"a": 1}], None], members))
    pairs = pa.map_(pa.field("k", pa.string(), False), pa.field("v", pa.int8(), False))
    yield "map_names", one(pa.array([[("a", 1)], None], pairs))
    metadata = {"unit": "m", "": "empty key", "long": "x" * 5000}
    yield "metadata", one(pa.array([1, 2]), False, metadata, {"a": "b", "c": ""})
    names = ["with.dot", "with space", "größe", "a[]", "quote\"", "a/b", "A", "a", "\\", "{}", "x" * 300]
    yield "names", pa.table([pa.array([1, 2])] * len(names), names=names)
    child_names = pa.struct([(name, pa.int8()) for name in ("with.dot", "", "a[]", "A", "a", "\\.")])
    yield "child_names", one(pa.array([dict.fromkeys((field.name for field in child_names), 1)] * 3, child_names))
    yield "no_name", pa.table([pa.array([1, 2])], names=[""])
    yield "same_names", pa.table([pa.array([1, 2]), pa.array(["a", "b"])], names=["a", "a"])
    pair = pa.StructArray.from_arrays([pa.array([1, 2]), pa.array(["a", "b"])], ["a", "a"])
    yield "same_names_in_struct", one(pair)
    pandas = '{"index_columns": ["i"], "columns": [{"name": "x", "field_name": "x", "pandas_type": "int64"}]}'
    yield "pandas", one(pa.array([1, 2]), schema_metadata={"pandas": pandas})
    yield "wide", pa.table({f"column {i}": pa.array([i, None]) for i in range(300)})
    source = random.Random("many rows")
    yield "many_rows", pa.table({"n": range(70_000), "t": [[source.random()] * (i % 3) for i in range(70_000)]})


def tables():
    for arrays in (numbers, decimals, times, texts, dictionaries, tensors):
        for name, array in arrays():
            yield name, one(array)
    yield from described()
