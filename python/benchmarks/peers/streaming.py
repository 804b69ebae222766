"""MosaicML Streaming: MDS shards, read in place."""

import functools

from .common import Row
from .tensors import collate


class Streaming(Row):
    name = "streaming"
    needs = {"streaming": "mosaicml-streaming"}
    orders = {
        "sequential": "in order",
        "shuffled": "any sample after any other (shuffle_algo=naive)",
        "windowed": "shards, and samples in a window of them (py1e)",
    }
    cannot_resume = None

    def write(self, source, folder):
        from streaming import MDSWriter

        columns = {column.name: _encoding(column) for column in source.columns}
        with MDSWriter(columns=columns, out=folder) as writer:
            for i in range(len(source)):
                writer.write(source[i])

    def loader(self, folder, spec):
        from streaming import StreamingDataLoader, StreamingDataset
        from streaming.base.util import clean_stale_shared_memory

        if spec.world == 1:
            clean_stale_shared_memory()
        dataset = StreamingDataset(
            local=folder,
            batch_size=spec.batch_size,
            shuffle=spec.order != "sequential",
            shuffle_algo="naive" if spec.order == "shuffled" else "py1e",
            shuffle_seed=spec.seed,
            num_canonical_nodes=1,
        )
        return StreamingDataLoader(
            dataset,
            batch_size=spec.batch_size,
            num_workers=spec.workers,
            persistent_workers=spec.workers > 0,
            drop_last=True,
            collate_fn=functools.partial(collate, columns=spec.columns),
        )

    def state(self, loader):
        return loader.state_dict()

    def resume(self, loader, state):
        loader.load_state_dict(state)


def _encoding(column):
    if column.dtype == "text":
        return "str"
    shape = "" if column.is_ragged else ":" + ",".join(map(str, column.shape))
    return f"ndarray:{column.numpy_dtype.name}{shape}"


ROWS = [Streaming()]
