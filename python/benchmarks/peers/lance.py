"""Lance: its version 2 files; random samples by ``take`` in spawned workers, scans by threads."""

import functools

import torch

from .common import Row
from .tensors import stack, torch_loader


class Lance(Row):
    name = "lance"
    needs = {"lance": "pylance"}
    orders = {"sequential": "in order (LanceDataset, read ahead)", "shuffled": "any sample after any other"}
    cannot_resume = "neither LanceDataset nor a DataLoader has a state"

    def write(self, source, folder):
        import lance
        import pyarrow as pa

        from .hf_datasets import _table

        batches = [_table(pa, source.columns, batch) for batch in source.batches()]
        lance.write_dataset(pa.concat_tables(batches), f"{folder}/data.lance", mode="create")

    def loader(self, folder, spec):
        uri = f"{folder}/data.lance"
        if spec.order == "sequential":
            import lance.torch.data

            convert = functools.partial(_convert, columns=spec.columns)
            return lance.torch.data.LanceDataset(
                uri, batch_size=spec.batch_size, batch_readahead=8, to_tensor_fn=convert
            )
        # Lance does not survive a fork.
        return torch_loader(_Dataset(uri, spec.columns), spec, multiprocessing_context="spawn")


class _Dataset:
    """Works like ``lance.torch.data.SafeLanceDataset``, which would return lists of Python numbers."""

    def __init__(self, uri, columns):
        import lance

        self.uri, self.columns = uri, columns
        self.count = lance.dataset(uri).count_rows()

    def __len__(self):
        return self.count

    @functools.cached_property
    def dataset(self):
        import lance

        return lance.dataset(self.uri)

    def __getitems__(self, indices):
        return _convert(self.dataset.take(indices), self.columns)


def _convert(table, columns, **_):
    return {column.name: _tensor(table[column.name], column) for column in columns}


def _tensor(array, column):
    if hasattr(array, "combine_chunks"):
        array = array.combine_chunks()
    if column.dtype == "text":
        return array.to_pylist()
    values = array.flatten().to_numpy()
    if column.is_ragged:
        offsets = array.offsets.to_numpy() - array.offsets[0].as_py()
        shape = (-1, *column.shape[1:])
        samples = [values[offsets[i] : offsets[i + 1]].reshape(shape) for i in range(len(array))]
        return stack(samples, column)
    tensor = torch.from_numpy(values.copy()).view(len(array), *column.shape)
    return tensor.view(torch.bfloat16) if column.dtype == "bf16" else tensor


ROWS = [Lance()]
