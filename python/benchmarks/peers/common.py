"""The interface of peers, and records of several columns. Does not need PyTorch."""

import importlib.util
from dataclasses import dataclass

NOT_WITH_SAMPLERS = "PyTorch has no sampler of windows"
NO_STATE = "PyTorch's DataLoader has no state"


@dataclass(frozen=True)
class Spec:
    """A run: its columns, its order and its number of workers."""

    columns: list
    order: str = "shuffled"
    workers: int = 2
    batch_size: int = 256
    seed: int = 1
    rank: int = 0
    world: int = 1


class Row:
    """A row of the tables: a library in one configuration."""

    name = ""
    # The modules to import, and the packages that contain them.
    needs: dict = {}
    compresses = False
    # How the peer provides each order; "nearest: ..." if only approximately. Other orders are not available.
    orders: dict = {}
    cannot_order = NOT_WITH_SAMPLERS
    # Why the peer cannot resume; None if it can.
    cannot_resume = NO_STATE
    cycles = 10
    # Whether the row runs by default.
    is_default = True

    @classmethod
    def missing(cls):
        """Returns the packages that are not installed."""
        return [package for module, package in cls.needs.items() if importlib.util.find_spec(module) is None]

    def write(self, source, folder):
        """Writes a ``Source`` to an empty folder."""
        raise NotImplementedError

    def loader(self, folder, spec):
        """Returns an object whose iterator yields batches: dicts from columns to tensors or lists."""
        raise NotImplementedError

    def state(self, loader):
        """Returns the state of a loader after the batches that were taken."""
        raise NotImplementedError

    def resume(self, loader, state):
        """Makes a new loader start at a state."""
        raise NotImplementedError


def pack(source, i):
    """Returns a sample as one record: its only column, or each column prefixed with its length."""
    parts = [source.bytes_of(column, i) for column in source.columns]
    return parts[0] if len(parts) == 1 else b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def unpack(record, columns):
    """Returns the bytes of each column of a record."""
    if len(columns) == 1:
        return {columns[0].name: record}
    sample, start = {}, 0
    for column in columns:
        end = start + 4 + int.from_bytes(record[start : start + 4], "little")
        sample[column.name] = record[start + 4 : end]
        start = end
    return sample
