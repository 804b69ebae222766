"""Measures loaders that deliver to a GPU: ``python python/benchmarks/device.py FILE COLUMN``.

Batches of several sizes are delivered in three ways: decoded on the GPU; decoded on the CPU and sent by the loader; and
from a CPU loader whose pinned tensors are copied. Figures are batches per second, delivered bytes per second, and CPU
time per batch. The first two ways show the size from which decoding on the GPU pays off, which is the default of
``min_device_bytes``.
"""

import argparse
import os
import time

import measure
import torch

import tensilo as ts
from tensilo.torch import Loader

BATCH_SIZES = [16, 64, 256, 1024, 4096]
# An emulated GPU has host memory.
MEMORY = "cpu" if "TENSILO_EMULATED_GPU" in os.environ else "cuda"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("column")
    parser.add_argument("--seconds", type=float, default=0.7, help="duration of each measurement")
    parser.add_argument("--workers", type=int, default=max(os.cpu_count() - 1, 1), help="decode threads")
    chosen = parser.parse_args()
    print(f"{os.path.basename(chosen.file)}, {chosen.column}, {chosen.workers} threads:\n")
    print("| batch | bytes | way | batches/s | GB/s | CPU us/batch |\n|---:|---:|---|---:|---:|---:|")
    for batch_size in BATCH_SIZES:
        for way, options in ways():
            loader = loader_of(chosen, batch_size, options)
            if loader is not None:
                row(loader, batch_size, way, chosen)


def ways():
    """Returns the options of each way."""
    yield "GPU", {"device": "cuda", "min_device_bytes": 0}
    yield "sent decoded", {"device": "cuda", "min_device_bytes": 1 << 62}
    yield "CPU, then copied", {"pin_memory": MEMORY != "cpu"}


def loader_of(chosen, batch_size, options):
    """Returns a loader of the column; None if the file has fewer samples than a batch."""
    dataset = ts.open(chosen.file)
    if len(dataset) < batch_size:
        return None
    column = dataset.schema[chosen.column]
    pad = {chosen.column: 0} if None in column.shape else None
    return Loader(
        dataset,
        batch_size,
        columns=[chosen.column],
        order="shuffled",
        pad=pad,
        decode_threads=chosen.workers,
        **options,
    )


def batches(loader):
    """Yields the tensors of consecutive epochs on the device."""
    while True:
        for batch in loader:
            (tensor,) = batch.values()
            yield tensor if loader.device else tensor.to(MEMORY, non_blocking=True)


def row(loader, batch_size, way, chosen):
    """Measures a loader, and prints a line."""
    feed = batches(loader)
    for _ in range(10):
        tensor = next(feed)
    count, begun, processor = 0, time.perf_counter(), measure.cpu_seconds()
    while time.perf_counter() - begun < chosen.seconds:
        tensor = next(feed)
        count += 1
    if MEMORY != "cpu":
        torch.cuda.synchronize()
    elapsed, processor = time.perf_counter() - begun, measure.cpu_seconds() - processor
    size = tensor.nbytes
    rate = count / elapsed
    print(f"| {batch_size} | {size} | {way} | {rate:.0f} | {rate * size / 1e9:.2f} | {processor / count * 1e6:.0f} |")


if __name__ == "__main__":
    main()
