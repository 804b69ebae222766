"""GPUs that decode, by their names in PyTorch."""

from __future__ import annotations

import os

from . import _tensilo

_opened: dict[tuple[int, int], _tensilo.Gpu] = {}


def number_of(device: str) -> int | None:
    """Returns the number in a name such as "cuda:1"; None of "cuda" alone."""
    kind, colon, number = device.partition(":")
    if kind != "cuda" or (colon and not number.isdecimal()):
        raise ValueError(f'device={device!r}: tensilo decodes on GPUs of NVIDIA, such as "cuda" or "cuda:1"')
    return int(number) if number else None


def opened(number: int) -> _tensilo.Gpu:
    """Returns a GPU, which is opened once in a process."""
    process = os.getpid()
    if any(other != process for other, _ in _opened):
        raise RuntimeError(
            "this process was forked after a GPU was used, and cannot use it: start processes by spawn or forkserver"
        )
    if (process, number) not in _opened:
        _opened[process, number] = _tensilo.Gpu(number)
    return _opened[process, number]
