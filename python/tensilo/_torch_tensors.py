"""Converts batches to PyTorch tensors.

A column becomes one tensor if its samples have a fixed shape or were padded, a nested tensor if only their first
extent varies, and a list otherwise.
"""

import torch


def of_column(column):
    """Returns a ``BatchColumn`` as a tensor: a nested one if only the first extent varies."""
    if column.is_tensor:
        return torch.from_dlpack(column)
    if column.dtype in ("utf8", "bytes"):
        raise TypeError(f"column {column.name!r}: PyTorch has no tensors of {column.dtype}: use tolist()")
    if column.levels or None in column.shape[2:]:
        raise TypeError(
            f"column {column.name!r}: a nested tensor needs samples that differ only in their first extent: use "
            "ragged(), padded() or tolist()"
        )
    values, offsets = map(torch.from_dlpack, column.ragged())
    # by default, PyTorch uses the total number of rows as the maximum length
    longest = int(offsets.diff().max()) if len(column) else 0
    return torch.nested.nested_tensor_from_jagged(values, offsets, max_seqlen=longest)


def of_batch(batch, *, pin_memory=False, null_masks=False):
    """Returns the columns of a ``Batch`` as tensors, or as lists if a tensor cannot hold them."""
    tensors = {name: or_list(column) for name, column in batch.items()}
    if null_masks:
        tensors |= masks_of(batch)
    return {name: pinned(tensor) for name, tensor in tensors.items()} if pin_memory else tensors


def masks_of(batch):
    """Returns the null masks of the nullable columns that become tensors."""
    columns = {name: column for name, column in batch.items() if column.nullable and has_tensor(column)}
    return {f"{name}_is_null": _mask(column) for name, column in columns.items()}


def _mask(column):
    nulls = column.nulls()
    return torch.zeros(len(column), dtype=torch.bool) if nulls is None else torch.from_dlpack(nulls)


def has_tensor(column):
    """Returns whether a ``BatchColumn`` can become one tensor, possibly a nested one."""
    is_jagged = not column.levels and column.dtype not in ("utf8", "bytes") and None not in column.shape[2:]
    return column.is_tensor or is_jagged


def pinned(tensor):
    """Copies a tensor to pinned memory from PyTorch's allocator. Nested tensors and lists are not copied."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_nested:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)


def in_shared_memory(shape, dtype):
    """Returns an uninitialized tensor in shared memory, which another process receives without a copy."""
    tensor = torch.empty(0, dtype=dtype)
    count = 1
    for extent in shape:
        count *= extent
    storage = torch.UntypedStorage._new_shared(count * tensor.element_size())
    return tensor.set_(storage, 0, tuple(shape), _strides(shape))


def dtype_of(name):
    """Returns the PyTorch dtype for a tensilo dtype name."""
    return _DTYPES[name]


def _strides(shape):
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))


def or_list(column):
    """Returns a ``BatchColumn`` as one tensor if possible. Otherwise returns a list of tensors, texts or lists."""
    if has_tensor(column):
        return of_column(column)
    if column.levels or column.dtype in ("utf8", "bytes"):
        return column.tolist()
    samples = map(column.__getitem__, range(len(column)))
    return [sample if sample is None else torch.from_dlpack(sample) for sample in samples]


_DTYPES = {
    "bf16": torch.bfloat16,
    "f16": torch.float16,
    "f32": torch.float32,
    "f64": torch.float64,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "u8": torch.uint8,
    "u16": torch.uint16,
    "u32": torch.uint32,
    "u64": torch.uint64,
    "bool": torch.bool,
    "complex64": torch.complex64,
    # PyTorch has no unpacked 4-bit and 6-bit dtypes, so tensors hold the bits
    **{
        f"f8_{name}": getattr(torch, f"float8_{name}", torch.uint8)
        for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    },
    **dict.fromkeys(("f6_e2m3", "f6_e3m2", "f4_e2m1", "i4", "u4"), torch.uint8),
    # padded samples of text are tensors of bytes
    "utf8": torch.uint8,
    "bytes": torch.uint8,
}
