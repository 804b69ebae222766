"""Gives list columns the same shape in all tasks of a distributed write.

Each task sees only some of the samples. If each task inferred shapes from its own samples, one task could find a
fixed length where another finds a varying length. So a list without a declared shape can have any length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa


def with_open_lists(
    schema: pa.Schema, shapes: Mapping[str, Sequence[int | None]] | None
) -> dict[str, Sequence[int | None]]:
    """Adds shapes with a varying length for the lists that ``shapes`` does not declare."""
    found = {field.name: _shape(field.type) for field in schema}
    return {**{name: shape for name, shape in found.items() if shape}, **(shapes or {})}


def _shape(type_: pa.DataType) -> tuple[int | None, ...] | None:
    """Returns the shape of the innermost list of numbers if its length varies, else None. Outer lists stay lists."""
    if not (pa.types.is_list(type_) or pa.types.is_large_list(type_)):
        return None
    extents: list[int] = []
    member = type_.value_type
    while pa.types.is_fixed_size_list(member):
        extents.append(member.list_size)
        member = member.value_type
    if pa.types.is_integer(member) or pa.types.is_floating(member) or pa.types.is_boolean(member):
        return (None, *extents)
    return None if extents else _shape(member)
