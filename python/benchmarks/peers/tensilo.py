"""tensilo: its Loader, whose threads decode, and its Dataset in PyTorch's DataLoader."""

import torch
from torch.utils.data import default_collate

from .common import Row
from .tensors import torch_loader


class _Tensilo(Row):
    needs = {"tensilo": "tensilo"}
    compresses = True

    def __init__(self, name, profile, cycles=10):
        self.name, self.profile, self.cycles = name, profile, cycles
        self.is_default = profile == "balanced"

    def write(self, source, folder):
        import tensilo as ts

        schema = {
            column.name: ts.utf8() if column.dtype == "text" else ts.tensor(column.dtype, column.shape)
            for column in source.columns
        }
        with ts.Writer(f"{folder}/data/", schema, profile=self.profile) as writer:
            for batch in source.batches():
                writer.write(**{column.name: _values(batch[column.name], column) for column in source.columns})


def _values(values, column):
    if column.dtype == "text":
        return values
    if isinstance(values, list):
        return [_values(value, column) for value in values]
    tensor = torch.from_numpy(values.copy() if not values.flags.writeable else values)
    return tensor.view(torch.bfloat16) if column.dtype == "bf16" else tensor


class TensiloLoader(_Tensilo):
    """``tensilo.torch.Loader``, with as many decode threads as other rows have workers."""

    orders = {
        "sequential": "in order",
        "shuffled": "any sample after any other",
        "windowed": "runs of samples, then samples in windows of runs",
    }
    cannot_resume = None

    def loader(self, folder, spec):
        from tensilo.torch import Loader

        ragged = {column.name: 0 for column in spec.columns if column.is_ragged}
        return Loader(
            f"{folder}/data/",
            spec.batch_size,
            order=spec.order,
            seed=spec.seed,
            pad=ragged,
            decode_threads=max(spec.workers, 1),
            rank=spec.rank,
            world_size=spec.world,
        )

    def state(self, loader):
        return loader.state_dict()

    def resume(self, loader, state):
        loader.load_state_dict(state)


class TensiloDataset(_Tensilo):
    """``tensilo.torch.Dataset`` in a ``DataLoader``, with padding in the workers."""

    orders = {"sequential": "in order", "shuffled": "any sample after any other"}

    def loader(self, folder, spec):
        from tensilo.torch import Dataset

        ragged = {column.name: 0 for column in spec.columns if column.is_ragged}
        return torch_loader(Dataset(f"{folder}/data/", pad=ragged), spec, default_collate)


ROWS = [
    TensiloLoader("tensilo", "balanced", cycles=1000),
    TensiloLoader("tensilo-fast", "fast"),
    TensiloDataset("tensilo-dataset", "balanced"),
    TensiloDataset("tensilo-dataset-fast", "fast"),
]
