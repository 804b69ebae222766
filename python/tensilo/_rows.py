"""Samples one by one."""

_AT_A_TIME = 256


def rows(dataset):
    """Yields the samples of a dataset as dicts, read 256 at a time."""
    count = len(dataset)
    for start in range(0, count, _AT_A_TIME):
        yield from dataset[start : min(start + _AT_A_TIME, count)].rows()
