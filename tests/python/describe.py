"""Schemas as text that shows everything pyarrow compares.

pyarrow reports only that two schemas differ. Texts show where, and known differences are replacements in them.
"""
import json

import pyarrow as pa


def schema_text(schema):
    """Returns a line for each field and one for the metadata of the schema."""
    lines = [field_text(field) for field in schema]
    return "\n".join([*lines, f"metadata{metadata_text(schema.metadata)}"])


def field_text(field):
    required = "" if field.nullable else "!"
    name = json.dumps(field.name, ensure_ascii=False)
    return f"{name}{required}{metadata_text(field.metadata)}: {type_text(field.type)}"


def metadata_text(metadata):
    pairs = sorted((metadata or {}).items())
    return f"{{{', '.join(f'{key.decode()}={value.decode()}' for key, value in pairs)}}}" if pairs else ""


def type_text(data_type):
    if isinstance(data_type, pa.BaseExtensionType):
        return f"{str(data_type)} of {type_text(data_type.storage_type)}"
    if pa.types.is_dictionary(data_type):
        ordered = "ordered " if data_type.ordered else ""
        return f"{ordered}dictionary[{data_type.index_type}]<{type_text(data_type.value_type)}>"
    name = kind(data_type)
    if name is None:
        return str(data_type)
    fields = (data_type.field(i) for i in range(data_type.num_fields))
    return f"{name}<{', '.join(field_text(field) for field in fields)}>"


def kind(data_type):
    """Returns the name of a type with children, without the children."""
    if pa.types.is_map(data_type):
        return "sorted_map" if data_type.keys_sorted else "map"
    if pa.types.is_fixed_size_list(data_type):
        return f"list[{data_type.list_size}]"
    if pa.types.is_nested(data_type) or pa.types.is_run_end_encoded(data_type):
        return str(data_type).split("<", 1)[0]
    return None
