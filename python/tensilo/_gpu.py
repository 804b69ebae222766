"""Opens the GPUs that decode, by device names such as "cuda:1"."""

from __future__ import annotations

import os

from . import _tensilo

_opened: dict[tuple[int, int], _tensilo.Gpu] = {}


def number_of(device: str) -> int | None:
    """Returns the index in a device name such as "cuda:1", or None for "cuda"."""
    kind, colon, number = device.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ValueError(f'device={device!r}: tensilo decodes only on NVIDIA GPUs: pass "cuda" or "cuda:1"')
    return int(number) if number else None


def opened(number: int) -> _tensilo.Gpu:
    """Returns a GPU. A process opens each GPU only once."""
    process = os.getpid()
    if any(other != process for other, _ in _opened):
        raise RuntimeError(
            "a GPU was used before this process was forked: start processes that use GPUs with spawn or forkserver"
        )
    if (process, number) not in _opened:
        _opened[process, number] = _tensilo.Gpu(number)
    return _opened[process, number]
