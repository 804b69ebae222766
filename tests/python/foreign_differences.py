"""Files of parquet-testing and arrow-testing that are known not to come back equal, with the reasons."""
from known import Known, month_day_nano

DICTIONARIES = "*/generated_dictionary.* */generated_dictionary_unsigned.* */generated_extension.*"

KNOWN = [
    # not converted
    Known("Arrow IPC in big-endian order.", "*/1.0.0-bigendian/*", refused="is big-endian"),
    Known("Unions.", "*/generated_union.*", refused="union"),
    Known(
        "A writer that declares its compressed pages as uncompressed.", "*/ARROW-17100.parquet",
        refused="claim to be uncompressed",
    ),
    Known(
        "Damage that pyarrow does not check for: wrong checksums of pages.", "*-corrupt-checksum.parquet",
        refused="Page CRC checksum mismatch",
    ),
    Known(
        "A footer that Arrow's Rust library does not read.", "*/dict-page-offset-zero.parquet",
        refused="the Parquet file is malformed",
    ),
    # values that pyarrow does not read
    Known(
        "96-bit timestamps that do not fit 64 bits of nanoseconds: pyarrow wraps them.",
        "*/int96_from_spark.parquet", schema=((r'"a": timestamp\[ns\]', '"a": timestamp[us]'),), values="other",
    ),
    # types that Parquet does not have
    Known(
        "Parquet has no date64, time32[s] and timestamp[s]. Arrow's Rust library writes integers, and restores them; "
        "pyarrow does not.", "*/generated_datetime.*", source="arrow", target="parquet", values="other",
        schema=((r"date64\[ms\]", "int64"), (r"time32\[s\]", "int32"), (r"timestamp\[s[^\]]*\]", "int64")),
    ),
    Known(
        "pyarrow does not read the intervals of Parquet.", "*/generated_interval.*", source="arrow", target="parquet",
        schema=((r"(month|day_time)_interval", "fixed_size_binary[12]"),), values="other",
    ),
    month_day_nano("*/generated_interval_mdn.*", "f1"),
    # types that pyarrow does not read from Parquet
    Known(
        "pyarrow does not read the logical type VARIANT. The Arrow schema in the file has it.",
        "*/shredded_variant/*", found=((r"ARROW:extension:name=arrow\.parquet\.variant, ", ""),),
    ),
    Known(
        "pyarrow does not read the logical types GEOMETRY and GEOGRAPHY. The Arrow schema has them.", "*/geospatial/*",
        target="arrow",
        found=(
            (r"\{PARQUET:logical_type=GEO\w+ \[.*\]\}(?=: binary)|, PARQUET:logical_type=GEO\w+ \[.*\](?=\}: binary)", ""),
        ),
    ),
    # names
    Known(
        "pyarrow names the entries of Parquet's maps like the map.",
        "*/generated_map.* */generated_map_non_canonical.*", target="parquet",
        schema=((r'"(\w+)"(!?): map<"entries"', r'"\1"\2: map<"\1"'),),
    ),
    Known(
        "From Arrow files, pyarrow does not read the names of keys and values.",
        "*/generated_map_non_canonical.arrow_file", target="parquet",
        schema=((r'"key"', '"some_key"'), (r'"value"', '"some_value"')),
    ),
    Known(
        "pyarrow names the entries of Parquet's maps like the map. Other libraries say `entries`.",
        "*/map_no_value.parquet */nested_maps.snappy.parquet */nonnullable.impala.parquet */nullable.impala.parquet",
        target="arrow", schema=((r'map<"\w+"', 'map<"entries"'),),
    ),
    # dictionaries
    Known(
        "From Parquet, pyarrow reads only texts and binaries as dictionaries.", "*/generated_dictionary.*",
        target="parquet", schema=((r"dictionary\[int16\]<int64>", "int64"),),
    ),
    Known(
        "Duplicate and null values of a dictionary are not distinguished, and Parquet has a dictionary for "
        "each row group.", DICTIONARIES, values="rows",
    ),
    Known(
        "Parquet has a dictionary for each row group.", "*/generated_shared_dict.*", target="parquet", values="rows",
    ),
    Known(
        "Dictionaries of nested values are exported as their values.", "*/generated_nested_dictionary.*",
        values="rows",
        schema=((r"dictionary\[int8\]<(list.*)>$", r"\1"), (r"dictionary\[int8\]<(struct.*)>$", r"\1")),
    ),
    Known(
        "Runs are exported as their rows.", "*/generated_run_end_encoded.*",
        schema=((r'run_end_encoded<"run_ends"!: \w+, "values": (.*)>$', r"\1"),),
    ),
]
