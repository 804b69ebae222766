"""Grain on ArrayRecord: individually compressed records, read by worker processes."""

import functools

import numpy as np

from .common import Row, pack, unpack

FILES = 4
WINDOW = 16384


class Grain(Row):
    name = "grain"
    needs = {"grain": "grain", "array_record": "array_record"}
    compresses = True
    orders = {
        "sequential": "in order",
        "shuffled": "any sample after any other",
        "windowed": f"samples in windows of {WINDOW}",
    }
    cannot_resume = None

    def write(self, source, folder):
        from array_record.python.array_record_module import ArrayRecordWriter

        each = -(-len(source) // FILES)
        for number in range(FILES):
            # One record per group, as ArrayRecord recommends for random access.
            writer = ArrayRecordWriter(f"{folder}/{number:04d}.array_record", "group_size:1,zstd:3")
            for i in range(number * each, min((number + 1) * each, len(source))):
                writer.write(pack(source, i))
            writer.close()

    def loader(self, folder, spec):
        import grain

        files = [f"{folder}/{number:04d}.array_record" for number in range(FILES)]
        source = grain.sources.ArrayRecordDataSource(files, reader_options={"max_parallelism": "1"})
        workers = grain.MultiprocessingOptions(num_workers=spec.workers, per_worker_buffer_size=2)
        if spec.world > 1:
            # The only Grain pipeline that resumes with another number of ranks. It does its own
            # batching, so samples must be arrays of one shape.
            column = spec.columns[0]
            dataset = _ordered(grain.MapDataset.source(source), spec)
            return _Loader(
                grain.experimental.ElasticIterator(
                    dataset.map(lambda record: {column.name: column.array(record)}),
                    spec.batch_size * spec.world,
                    grain.sharding.ShardOptions(spec.rank, spec.world),
                ),
                spec.columns,
            )
        # Reads batches, because reading a single record costs about 140 us. Repeats, as Grain
        # recommends, because a new epoch would start its processes again.
        dataset = _ordered(grain.MapDataset.range(len(source)), spec).repeat()
        dataset = dataset.batch(spec.batch_size, drop_remainder=True)
        dataset = dataset.map(functools.partial(_read, source=source, columns=spec.columns))
        dataset = dataset.to_iter_dataset(grain.ReadOptions(num_threads=1, prefetch_buffer_size=4))
        return _Loader(dataset.mp_prefetch(workers) if spec.workers else dataset, spec.columns)

    def state(self, loader):
        return loader.iterator.get_state()

    def resume(self, loader, state):
        loader.state = state


class _Loader:
    """Keeps the iterator, which has the state, and converts batches to tensors."""

    def __init__(self, dataset, columns):
        self.dataset, self.columns = dataset, columns
        self.iterator = self.state = None

    def __iter__(self):
        self.iterator = iter(self.dataset)
        if self.state is not None:
            self.iterator.set_state(self.state)
            self.state = None
        for batch in self.iterator:
            yield {column.name: _tensor(batch[column.name], column) for column in self.columns}


def _ordered(dataset, spec):
    import grain

    dataset = dataset.seed(spec.seed)
    if spec.order == "windowed":
        return grain.experimental.WindowShuffleMapDataset(dataset, window_size=WINDOW, seed=spec.seed)
    return dataset.shuffle() if spec.order == "shuffled" else dataset


def _read(indices, source, columns):
    """Returns a batch as arrays. Grain's processes call this, and do not import PyTorch."""
    samples = [unpack(record, columns) for record in source.__getitems__(indices.tolist())]
    return {
        column.name: _stack([column.array(sample[column.name]) for sample in samples], column) for column in columns
    }


def _stack(values, column):
    if column.dtype == "text" or not column.is_ragged:
        return values if column.dtype == "text" else np.stack(values)
    array = np.zeros((len(values), max(map(len, values)), *column.shape[1:]), column.numpy_dtype)
    for row, value in zip(array, values, strict=True):
        row[: len(value)] = value
    return array


def _tensor(array, column):
    from .tensors import tensor_of

    return array if column.dtype == "text" else tensor_of(array, column)


ROWS = [Grain()]
