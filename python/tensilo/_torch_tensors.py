"""Tensors of PyTorch."""

import torch


def of_column(column):
    """Returns the samples of a ``BatchColumn`` as a tensor: a nested one if only their first extent varies."""
    if column.is_tensor:
        return torch.from_dlpack(column)
    if column.dtype in ("utf8", "bytes"):
        raise TypeError(f"column {column.name!r}: PyTorch has no tensors of {column.dtype}; use tolist()")
    if column.levels or None in column.shape[2:]:
        raise TypeError(
            f"column {column.name!r}: a nested tensor has samples that differ in their first extent alone; use "
            "ragged(), padded() or tolist()"
        )
    values, offsets = map(torch.from_dlpack, column.ragged())
    # PyTorch would take all rows for the longest
    longest = int(offsets.diff().max()) if len(column) else 0
    return torch.nested.nested_tensor_from_jagged(values, offsets, max_seqlen=longest)


def of_batch(batch, *, pin_memory=False, null_masks=False):
    """Returns the columns of a ``Batch``: tensors, and lists of what has none."""
    tensors = {name: or_list(column) for name, column in batch.items()}
    if null_masks:
        tensors |= masks_of(batch)
    return {name: pinned(tensor) for name, tensor in tensors.items()} if pin_memory else tensors


def masks_of(batch):
    """Returns for each column that may have nulls, and is a tensor, which samples are null."""
    columns = {name: column for name, column in batch.items() if column.nullable and has_tensor(column)}
    return {f"{name}_is_null": _mask(column) for name, column in columns.items()}


def _mask(column):
    nulls = column.nulls()
    return torch.zeros(len(column), dtype=torch.bool) if nulls is None else torch.from_dlpack(nulls)


def has_tensor(column):
    """Returns whether a ``BatchColumn`` is a tensor, maybe a nested one."""
    is_jagged = not column.levels and column.dtype not in ("utf8", "bytes") and None not in column.shape[2:]
    return column.is_tensor or is_jagged


def pinned(tensor):
    """Returns a copy in pinned memory of PyTorch's own, which its allocator knows."""
    if not isinstance(tensor, torch.Tensor) or tensor.is_nested:
        return tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True).copy_(tensor)


def in_shared_memory(shape, dtype):
    """Returns an empty tensor that another process takes without a copy."""
    tensor = torch.empty(0, dtype=dtype)
    count = 1
    for extent in shape:
        count *= extent
    storage = torch.UntypedStorage._new_shared(count * tensor.element_size())
    return tensor.set_(storage, 0, tuple(shape), _strides(shape))


def dtype_of(name):
    """Returns the dtype of PyTorch."""
    return _DTYPES[name]


def _strides(shape):
    strides, stride = [], 1
    for extent in reversed(shape):
        strides.append(stride)
        stride *= max(extent, 1)
    return tuple(reversed(strides))


def or_list(column):
    """Returns a ``BatchColumn`` as a tensor, or as a list if there is none: of tensors, unless it has none."""
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
    # of those of 4 and 6 bits PyTorch has none, or packed ones: these are their bits
    **{
        f"f8_{name}": getattr(torch, f"float8_{name}", torch.uint8)
        for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
    },
    **dict.fromkeys(("f6_e2m3", "f6_e3m2", "f4_e2m1", "i4", "u4"), torch.uint8),
    # of which padded samples have the bytes
    "utf8": torch.uint8,
    "bytes": torch.uint8,
}
