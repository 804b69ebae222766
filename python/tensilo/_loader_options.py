"""Options that the PyTorch and JAX loaders pass on to ``tensilo.Loader``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypedDict

from . import _tensilo

Io = Literal["auto", "mmap", "pread", "io_uring", "direct"]


class LoaderOptions(TypedDict, total=False):
    """The options of ``tensilo.Loader``, which documents them."""

    columns: str | Sequence[str] | None
    casts: Mapping[str, Any] | None
    pad: Mapping[str, float | tuple[float, int]] | None
    order: Literal["windowed", "shuffled", "sequential"] | None
    window_sizes: tuple[int, int, int] | None
    seed: int | None
    last_batch: Literal["drop", "pad", "exact"] | None
    decode_threads: int | Literal["auto"]
    io_depth: int
    prefetch: int
    on_damage: Literal["error", "substitute"]


# options of DataLoader, and the options to use instead
_HINTS = {
    "shuffle": 'order="shuffled" or "sequential"',
    "num_workers": "decode_threads",
    "prefetch_factor": "prefetch",
    "drop_last": 'last_batch="drop", "pad" or "exact"',
    "collate_fn": "pad and casts",
    "sampler": "order, rank and world_size, or dataset.select",
    "batch_sampler": "order, rank and world_size, or dataset.select",
    "generator": "seed",
}


def opened(source: Any, io: Io) -> _tensilo.Dataset:
    """Returns ``source`` if it is a dataset. Otherwise opens it with ``tensilo.open``."""
    return source if isinstance(source, _tensilo.Dataset) else _tensilo.open(source, io=io)


def check(options: Mapping[str, Any]) -> None:
    """Raises a helpful ``TypeError`` for an unknown option."""
    for name in options:
        if name not in LoaderOptions.__annotations__:
            hint = _HINTS.get(name)
            there = f"use {hint}" if hint else f"the options are {', '.join(LoaderOptions.__annotations__)}"
            raise TypeError(f"Loader has no option {name!r}: {there}")
