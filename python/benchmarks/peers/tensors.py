"""Makes batches of tensors from arrays or bytes, and PyTorch loaders."""

import numpy as np
import torch
from torch.utils.data import DataLoader, get_worker_info

TORCH_DTYPES = {"bf16": torch.bfloat16, "i32": torch.int32}


def torch_loader(dataset, spec, collate=None, **options):
    """Returns a ``DataLoader`` of a dataset with ``__getitems__``."""
    options = {"persistent_workers": True, **options} if spec.workers else {}
    generator = torch.Generator().manual_seed(spec.seed)
    return DataLoader(
        dataset,
        spec.batch_size,
        shuffle=spec.order == "shuffled",
        drop_last=True,
        num_workers=spec.workers,
        collate_fn=collate or same,
        generator=generator,
        **options,
    )


def same(batch):
    """Returns a batch that ``__getitems__`` made."""
    return batch


def empty(count, shape, column):
    """Returns an array and a tensor that share memory; in a worker process, shared memory that the parent maps."""
    shape = (count, *shape)
    dtype = TORCH_DTYPES[column.dtype]
    if get_worker_info() is None:
        tensor = torch.empty(shape, dtype=dtype)
    else:
        byte_count = int(np.prod(shape)) * dtype.itemsize
        storage = torch.UntypedStorage._new_shared(byte_count)
        tensor = torch.empty(0, dtype=dtype).set_(storage).view(shape)
    bits = tensor.view(torch.int16) if column.dtype == "bf16" else tensor
    return bits.numpy(), tensor


def tensor_of(array, column):
    """Returns an array of whole samples as a tensor, without a copy."""
    tensor = torch.from_numpy(array)
    return tensor.view(torch.bfloat16) if column.dtype == "bf16" else tensor


def stack(values, column):
    """Returns samples as one tensor, padded with zeros if ragged. Text stays a list."""
    if column.dtype == "text":
        return list(values)
    if not column.is_ragged:
        array, tensor = empty(len(values), column.shape, column)
        np.stack(values, out=array)
        return tensor
    longest = max(map(len, values))
    array, tensor = empty(len(values), (longest, *column.shape[1:]), column)
    for row, value in zip(array, values, strict=True):
        row[: len(value)] = value
        row[len(value) :] = 0
    return tensor


def stack_bytes(values, column):
    """Returns samples that are bytes as one tensor."""
    return stack([column.array(value) for value in values], column)


def collate(samples, columns):
    """Returns a batch of samples that are dicts of arrays."""
    return {column.name: stack([sample[column.name] for sample in samples], column) for column in columns}


def collate_bytes(samples, columns):
    """Returns a batch of samples that are dicts of bytes."""
    return {column.name: stack_bytes([sample[column.name] for sample in samples], column) for column in columns}
