"""Tables of jagged lists, of nulls at every level, of maps, of VARIANT, and of nothing."""
import random

import pyarrow as pa


def values_of(source, data_type, nullable=True):
    """Returns a random value of a type, with nulls at every level."""
    if pa.types.is_null(data_type) or (nullable and source.random() < 0.15):
        return None
    if pa.types.is_struct(data_type):
        return {field.name: values_of(source, field.type, field.nullable) for field in data_type}
    if pa.types.is_map(data_type):
        keys = [f"key {i}" for i in range(source.randrange(4))]
        return [(key, values_of(source, data_type.item_type)) for key in keys]
    if pa.types.is_fixed_size_list(data_type):
        return [values_of(source, data_type.value_type, data_type.value_field.nullable)
                for _ in range(data_type.list_size)]
    if pa.types.is_nested(data_type):
        return [values_of(source, data_type.value_type, data_type.value_field.nullable)
                for _ in range(source.randrange(4))]
    if pa.types.is_boolean(data_type):
        return source.random() < 0.5
    if pa.types.is_fixed_size_binary(data_type):
        return source.randbytes(data_type.byte_width)
    if pa.types.is_floating(data_type):
        return source.randrange(-50, 50) / 4
    if pa.types.is_integer(data_type):
        return source.randrange(100)
    if any(test(data_type) for test in (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view)):
        return source.randbytes(source.randrange(30))
    return "é" * source.randrange(12)


TEXTS = pa.list_(pa.string())
PAIR = pa.struct([("a", pa.int32()), ("b", pa.string())])
PLAIN_VARIANT = pa.struct([pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary())])


def shredded(typed):
    """Returns the struct of a shredded VARIANT, whose members of this type have columns of their own."""
    return pa.struct([pa.field("value", pa.binary()), pa.field("typed_value", typed)])


VARIANT_MEMBERS = pa.struct([
    pa.field("event", shredded(pa.string()), False),
    pa.field("counts", shredded(pa.list_(pa.field("element", shredded(pa.int64()), False))), False),
])
SHREDDED_VARIANT = pa.struct([
    pa.field("metadata", pa.binary(), False), pa.field("value", pa.binary()), pa.field("typed_value", VARIANT_MEMBERS),
])

TYPES = {
    "jagged_2": pa.list_(pa.list_(pa.float32())),
    "jagged_4": pa.list_(pa.list_(pa.list_(pa.list_(pa.int16())))),
    "jagged_large": pa.large_list(pa.large_list(pa.int8())),
    "jagged_views": pa.list_view(pa.list_view(pa.int8())),
    "jagged_large_views": pa.large_list_view(pa.large_list_view(pa.string())),
    "fixed_in_jagged": pa.list_(pa.list_(pa.list_(pa.float32(), 3))),
    "jagged_in_fixed": pa.list_(pa.list_(pa.float32()), 2),
    "fixed_in_fixed": pa.list_(pa.list_(pa.bool_(), 2), 3),
    "texts": pa.list_(pa.list_(pa.large_string())),
    "texts_of_3": pa.list_(pa.string_view(), 3),
    "nulls_in_lists": pa.list_(pa.list_(pa.null())),
    "halves": pa.list_(pa.float16()),
    "halves_of_4": pa.list_(pa.float16(), 4),
    "binaries_of_16": pa.list_(pa.binary(16)),
    "pairs": pa.struct([("outer", pa.struct([("pair", PAIR), ("pairs", pa.list_(PAIR))])), ("n", pa.int64())]),
    "pairs_of_2": pa.list_(PAIR, 2),
    "pairs_in_lists": pa.list_(pa.list_(pa.list_(PAIR))),
    "pairs_in_large_lists": pa.large_list(pa.list_view(PAIR)),
    "lists_in_structs_in_lists": pa.list_(pa.struct([("x", pa.list_(pa.list_(pa.float32()))), ("y", pa.list_(PAIR))])),
    "maps": pa.map_(pa.string(), pa.int32()),
    "sorted_maps": pa.map_(pa.string(), pa.int32(), keys_sorted=True),
    "maps_of_lists": pa.map_(pa.large_string(), TEXTS),
    "maps_of_pairs": pa.map_(pa.string(), pa.list_(PAIR)),
    "maps_of_maps": pa.map_(pa.string(), pa.map_(pa.string(), pa.float64())),
    "lists_of_maps": pa.list_(pa.map_(pa.string(), PAIR)),
    "maps_in_structs": pa.struct([("m", pa.map_(pa.string(), pa.binary()))]),
    "variant": PLAIN_VARIANT,
    "variants": pa.list_(PLAIN_VARIANT),
    "shredded_variant": SHREDDED_VARIANT,
    "no_bools_in_structs": pa.struct([("n", pa.int8()), ("none", pa.list_(pa.bool_(), 0))]),
    "no_bools_in_lists": pa.list_(pa.struct([("n", pa.int8()), ("none", pa.list_(pa.bool_(), 0))])),
    "structs_without_fields": pa.struct([]),
    "lists_of_structs_without_fields": pa.list_(pa.struct([])),
    "struct_of_empty": pa.struct([("n", pa.int8()), ("e", pa.struct([]))]),
}


def random_tables():
    for name, data_type in TYPES.items():
        source = random.Random(name)
        yield name, one(pa.array([values_of(source, data_type) for _ in range(60)], data_type))
        if not pa.types.is_map(data_type):  # a map type does not say whether keys may be null
            required = [values_of(source, without_nulls(data_type), False) for _ in range(20)]
            yield f"required_{name}", one(pa.array(required, without_nulls(data_type)), nullable=False)


def without_nulls(data_type):
    """Returns a type without nullable parts, as far as Arrow can declare that."""
    field = lambda field: pa.field(field.name, without_nulls(field.type), pa.types.is_null(field.type))
    if pa.types.is_struct(data_type):
        return pa.struct([field(child) for child in data_type])
    makers = ((pa.types.is_list, pa.list_), (pa.types.is_large_list, pa.large_list),
              (pa.types.is_list_view, pa.list_view), (pa.types.is_large_list_view, pa.large_list_view))
    for test, make in makers:
        if test(data_type):
            return make(field(data_type.value_field))
    if pa.types.is_fixed_size_list(data_type):
        return pa.list_(field(data_type.value_field), data_type.list_size)
    return data_type


def one(array, nullable=True, metadata=None, schema_metadata=None):
    """Returns a table of one column."""
    schema = pa.schema([pa.field("x", array.type, nullable, metadata)], schema_metadata)
    return pa.Table.from_arrays([array], schema=schema)


def empty_tables():
    """Yields tables without rows, without columns, and with only nulls or empty lists."""
    types = {"texts": TEXTS, "floats": pa.list_(pa.float32()), "boxes": pa.list_(pa.float32(), 4), "pair": PAIR,
             "pairs": pa.list_(PAIR), "map": pa.map_(pa.string(), TEXTS), "bytes": pa.binary(), "null": pa.null(),
             "nothing": pa.struct([]), "large": pa.large_list(pa.large_string()), "none": pa.list_(pa.int8(), 0)}
    columns = {name: pa.array([], data_type) for name, data_type in types.items()}
    yield "no_rows", pa.table({name: array for name, array in columns.items() if name != "nothing"})
    yield "no_rows_nothing", one(columns["nothing"])
    yield "no_columns_no_rows", pa.table({})
    for name, data_type in types.items():
        yield f"all_null_{name}", one(pa.nulls(7, data_type))
        if name in ("texts", "floats", "pairs", "map", "large", "none"):
            yield f"all_empty_{name}", one(pa.array([[]] * 7, data_type))
    yield "all_empty_structs", one(pa.array([{}] * 7, pa.struct([])))
    yield "all_empty_strings", one(pa.array([""] * 7))


def tables():
    yield from random_tables()
    yield from empty_tables()
