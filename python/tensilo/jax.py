"""Batches for JAX."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax

from . import _tensilo

__all__ = ["Loader"]


class Loader:
    """Batches of arrays of JAX, of which each process has its share.

    A batch is a dict from names to arrays; texts, and samples of different shapes that ``pad`` does not
    name, are lists.

    Args:
        source: a ``tensilo.Dataset``, or what ``tensilo.open`` takes.
        batch_size: the samples of a batch of this process.
        sharding: a ``jax.sharding.Sharding``: arrays are then global ones, of the batches of all processes.
        access: how files are read, see ``tensilo.open``.

    Others are those of ``tensilo.Loader``. Rank and world size are those of JAX's processes.
    """

    def __init__(
        self, source: Any, batch_size: int, *, sharding: Any = None, access: str | None = None, **options: Any
    ) -> None:
        dataset = source if isinstance(source, _tensilo.Dataset) else _tensilo.open(source, access=access)
        options = {"rank": jax.process_index(), "world_size": jax.process_count(), **options}
        self._loader = _tensilo.Loader(dataset, batch_size, **options)
        self._sharding = sharding

    def __getattr__(self, name: str) -> Any:
        # epoch, set_epoch, state_dict, load_state_dict, stats, samples
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._loader, name)

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        for batch in self._loader:
            yield {name: self._array(column) for name, column in batch.items()}

    def _array(self, column: _tensilo.BatchColumn) -> Any:
        if not column.is_tensor or column.dtype in ("utf8", "bytes"):
            return column.tolist()
        if self._sharding is None:
            return column.jax()
        return jax.make_array_from_process_local_data(self._sharding, column.numpy())
