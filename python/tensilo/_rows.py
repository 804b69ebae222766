"""Iterates over a dataset sample by sample."""

_BATCH_SAMPLES = 256


def rows(dataset):
    """Yields the samples of a dataset as dicts, read 256 at a time."""
    count = len(dataset)
    for start in range(0, count, _BATCH_SAMPLES):
        yield from dataset[start : min(start + _BATCH_SAMPLES, count)].rows()
