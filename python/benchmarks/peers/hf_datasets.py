"""HF datasets: mapped Arrow files in the format "torch", with batches from a BatchSampler."""

import functools

import torch
from torch.utils.data import BatchSampler, DataLoader, RandomSampler, SequentialSampler

from .common import Row
from .tensors import stack


class HfDatasets(Row):
    name = "hf-datasets"
    needs = {"datasets": "datasets"}
    orders = {"sequential": "in order", "shuffled": "any sample after any other"}
    cannot_resume = "a map-style Dataset in a DataLoader has no state; an IterableDataset has one, without its buffer"

    def write(self, source, folder):
        import datasets
        import pyarrow as pa

        tables = [_table(pa, source.columns, batch) for batch in source.batches()]
        datasets.disable_progress_bars()
        datasets.Dataset(pa.concat_tables(tables)).save_to_disk(f"{folder}/data")

    def loader(self, folder, spec):
        import datasets

        dataset = datasets.load_from_disk(f"{folder}/data")
        # Arrow has no bf16. The type keeps the format from widening integers to 64 bits.
        is_wide = any(column.dtype == "i32" for column in spec.columns)
        dataset = dataset.with_format("torch", dtype=torch.int32 if is_wide else torch.int16)
        generator = torch.Generator().manual_seed(spec.seed)
        shuffled = spec.order == "shuffled"
        sampler = RandomSampler(dataset, generator=generator) if shuffled else SequentialSampler(dataset)
        return DataLoader(
            dataset,
            batch_size=None,
            sampler=BatchSampler(sampler, spec.batch_size, drop_last=True),
            num_workers=spec.workers,
            persistent_workers=spec.workers > 0,
            collate_fn=functools.partial(_batch, columns=spec.columns),
        )


def _table(pa, columns, batch):
    return pa.table({column.name: _array(pa, column, batch[column.name]) for column in columns})


def _array(pa, column, values):
    """Returns samples as Arrow lists of elements, which are reshaped after reading."""
    if column.dtype == "text":
        return pa.array(values, pa.string())
    if column.is_ragged:
        kind = pa.large_list(pa.from_numpy_dtype(column.numpy_dtype))
        return pa.array([value.ravel() for value in values], kind)
    flat = values.reshape(len(values), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), flat.shape[1])


def _batch(batch, columns):
    return {column.name: _tensor(column, batch[column.name]) for column in columns}


def _tensor(column, values):
    if column.dtype == "text":
        return values
    if column.is_ragged:
        values = list(values) if isinstance(values, torch.Tensor) else values
        return stack([value.numpy().reshape(-1, *column.shape[1:]) for value in values], column)
    values = values.reshape(len(values), *column.shape)
    return values.view(torch.bfloat16) if column.dtype == "bf16" else values


ROWS = [HfDatasets()]
