"""WebDataset: tar files, read in sequence; samples are shuffled in a buffer."""

import functools

from .common import Row
from .tensors import collate_bytes

SHARDS = 16
BUFFER = 1000


class WebDataset(Row):
    name = "webdataset"
    needs = {"webdataset": "webdataset"}
    orders = {
        "sequential": "in order, by each worker",
        "shuffled": f"nearest: shards, then a buffer of {BUFFER} samples",
        "windowed": f"shards, then a buffer of {BUFFER} samples",
    }
    cannot_resume = "a pipeline has no state"

    def write(self, source, folder):
        import webdataset as wds

        each = -(-len(source) // SHARDS)
        with wds.ShardWriter(f"{folder}/%06d.tar", maxcount=each, maxsize=1 << 40, verbose=0) as writer:
            for i in range(len(source)):
                sample = {f"{column.name}.bin": source.bytes_of(column, i) for column in source.columns}
                writer.write({"__key__": f"{i:09d}", **sample})

    def loader(self, folder, spec):
        import webdataset as wds

        shards = [f"{folder}/{i:06d}.tar" for i in range(SHARDS)]
        is_shuffled = spec.order != "sequential"
        dataset = wds.WebDataset(shards, shardshuffle=SHARDS if is_shuffled else False, seed=spec.seed)
        if is_shuffled:
            dataset = dataset.shuffle(BUFFER)
        batch = functools.partial(_batch, columns=spec.columns)
        dataset = dataset.batched(spec.batch_size, collation_fn=batch, partial=False)
        return wds.WebLoader(dataset, batch_size=None, num_workers=spec.workers, persistent_workers=spec.workers > 0)


def _batch(samples, columns):
    named = [{column.name: sample[f"{column.name}.bin"] for column in columns} for sample in samples]
    return collate_bytes(named, columns)


ROWS = [WebDataset()]
