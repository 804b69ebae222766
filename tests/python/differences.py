"""Tables that are known not to come back equal, with the reasons."""
from known import Known, month_day_nano

NO_FIELDS = "*structs_without_fields *struct_of_empty no_rows_nothing all_null_nothing all_empty_structs"
MAPS = "*maps *maps_of_* maps_in_structs required_maps_in_structs no_rows all_*_map map_names"

KNOWN = [
    Known("A file has at least one column.", "no_columns_no_rows", refused="the input has no columns"),
    Known(
        "Parquet has no structs without fields.", NO_FIELDS, target="parquet",
        refused="Parquet cannot store a struct without fields",
    ),
    Known(
        "pyarrow names the entries of Parquet's maps like the map. The Arrow schema in the file says `entries`.",
        MAPS, source="parquet", target="arrow", schema=((r'map<"\w+"', 'map<"entries"'),),
    ),
    Known(
        "pyarrow names the entries of Parquet's maps like the map.", MAPS + " dictionary_maps", source="arrow",
        target="parquet", schema=((r'"(\w+)"(!?): (|sorted_|dictionary\[int8\]<)map<"entries"', r'"\1"\2: \3map<"\1"'),),
    ),
    Known(
        "From Arrow files, pyarrow does not read the names of keys and values.", "map_names", source="arrow",
        target="parquet", schema=((r'"key"', '"k"'), (r'"value"', '"v"')),
    ),
    # types that Parquet does not have
    Known(
        "Parquet has no decimals whose scale is negative. They are stored as integers.", "decimal*-2)",
        target="parquet", schema=((r'"x": (decimal\d+)\(3, -2\)', r'"x"{arrow.type=\1[3, -2]}: int32'),),
        values="other",
    ),
    Known(
        "Parquet has no timestamps in seconds. Arrow's Rust library writes integers, and restores them; pyarrow does "
        "not.", "timestamp_s_* seconds seconds_in_*", source="arrow", target="parquet",
        schema=((r"timestamp\[s[^\]]*\]", "int64"),),
    ),
    Known(
        "Parquet has no times in seconds. Arrow's Rust library writes integers, and restores them; pyarrow does not.",
        "time32_s", source="arrow", target="parquet", schema=((r"time32\[s\]", "int32"),),
    ),
    Known(
        "Parquet has no dates in milliseconds. Arrow's Rust library writes integers, and restores them; pyarrow does "
        "not.", "date64", source="arrow", target="parquet", schema=((r"date64\[ms\]", "int64"),),
    ),
    Known(
        "The Arrow schema in the file says date64, which pyarrow ignores.", "date64", source="parquet", target="arrow",
        schema=((r"date32\[day\]", "date64[ms]"),),
    ),
    Known(
        "The Arrow schema in the file says date64, which pyarrow ignores and Parquet does not have.", "date64",
        source="parquet", target="parquet", schema=((r"date32\[day\]", "int64"),), values="other",
    ),
    month_day_nano("month_day_nano", "x"),
    Known(
        "Parquet has no binaries of 0 bytes.", "fixed_size_binary_0", target="parquet",
        schema=((r'"x": fixed_size_binary\[0\]', '"x"{arrow.type=fixed_size_binary[0]}: binary'),),
    ),
    # dictionaries
    Known(
        "Parquet has a dictionary for each row group, with only the values that occur.",
        "dictionary_*int8 dictionary_*int64 dictionary_uint32 dictionary_unused dictionary_binaries", target="parquet",
        values="rows",
    ),
    Known(
        "Duplicate and null values of a dictionary are not distinguished.", "dictionary_twice dictionary_null",
        source="arrow", values="rows",
    ),
    Known(
        "Only dictionaries of texts and integers keep their order.",
        "dictionary_times dictionary_decimal* dictionary_binaries dictionary_uuids", source="arrow", target="arrow",
        values="rows",
    ),
    Known(
        "Parquet's writer does not keep the order of a dictionary.", "dictionary_ordered", target="parquet",
        schema=((r"ordered dictionary", "dictionary"),), values="rows",
    ),
    Known(
        "An append may add values out of order, so a file of several commits has no ordered dictionaries.",
        "dictionary_ordered", target="arrow", route="append", schema=((r"ordered dictionary", "dictionary"),),
    ),
    Known(
        "pyarrow reads all texts of Parquet's dictionaries with 32-bit offsets. The Arrow schema in the file says "
        "large.", "dictionary_unused dictionary_binaries", source="parquet", target="arrow",
        schema=((r"<(string|binary)>", r"<large_\1>"),),
    ),
    Known(
        "pyarrow reads all texts of Parquet's dictionaries with 32-bit offsets.",
        "dictionary_unused dictionary_binaries dictionary_views", source="arrow", target="parquet",
        schema=((r"<(large_)?(string|binary)(_view)?>", r"<\2>"),),
    ),
    Known(
        "From Parquet, pyarrow reads only texts and binaries as dictionaries.",
        "dictionary_ints dictionary_floats dictionary_halves dictionary_times dictionary_decimal* dictionary_uuids",
        source="arrow", target="parquet", schema=((r"dictionary\[int8\]<(.*)>$", r"\1"),),
    ),
    Known(
        "The Arrow schema in the file says dictionary. pyarrow reads only texts and binaries as dictionaries.",
        "dictionary_ints dictionary_floats dictionary_times dictionary_uuids", source="parquet", target="arrow",
        schema=((r'"x": (.*)$', r'"x": dictionary[int8]<\1>'),),
    ),
    Known(
        "Dictionaries of nested values, or of values that are not whole bytes, are exported as their values.",
        "dictionary_bools dictionary_lists dictionary_texts dictionary_structs dictionary_maps "
        "list_of_dictionaries_of_structs bools_in_*", source="arrow",
        schema=((r"dictionary\[int8\]<(bool|.*?>)>", r"\1"),),
    ),
    Known(
        "Runs are exported as their rows.", "runs runs_of_*", source="arrow",
        schema=((r'run_end_encoded<"run_ends"!: \w+, "values": (.*)>$', r"\1"),),
    ),
]
