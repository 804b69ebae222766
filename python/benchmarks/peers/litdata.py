"""litData: chunks of serialized tensors, mapped in place."""

import functools

import torch

from .common import Row
from .tensors import collate


class LitData(Row):
    name = "litdata"
    needs = {"litdata": "litdata"}
    orders = {
        "sequential": "in order, by each worker",
        "shuffled": "nearest: chunks, then blocks of 256 samples in a chunk, then samples in a block",
        "windowed": "chunks, then blocks of 256 samples in a chunk, then samples in a block",
    }
    cannot_resume = None

    def write(self, source, folder):
        import litdata

        litdata.optimize(
            fn=functools.partial(_sample, source),
            inputs=list(range(len(source))),
            output_dir=folder,
            chunk_bytes="64MB",
            num_workers=1,
            verbose=False,
            keep_data_ordered=True,
        )

    def loader(self, folder, spec):
        import litdata

        dataset = litdata.StreamingDataset(
            folder,
            shuffle=spec.order != "sequential",
            drop_last=True,
            seed=spec.seed,
        )
        return litdata.StreamingDataLoader(
            dataset,
            batch_size=spec.batch_size,
            num_workers=spec.workers,
            persistent_workers=spec.workers > 0,
            collate_fn=functools.partial(_batch, columns=spec.columns),
        )

    def state(self, loader):
        return loader.state_dict()

    def resume(self, loader, state):
        loader.load_state_dict(state)


def _sample(source, i):
    """Returns a sample as tensors, with int16 for bf16, which litData cannot write."""
    sample = source[i]
    return {name: value if isinstance(value, str) else torch.from_numpy(value.copy()) for name, value in sample.items()}


def _batch(samples, columns):
    arrays = [
        {name: value if isinstance(value, str) else value.numpy() for name, value in sample.items()}
        for sample in samples
    ]
    return collate(arrays, columns)


ROWS = [LitData()]
