"""Trains a small model on log-mel, fed in several ways: ``python python/benchmarks/training.py``.

This is the experiment that tensilo started with. The model predicts the pitch of each frame; a step is forward,
backward and optimizer. Each way of feeding it runs in a separate process:

====================  ================================================================================
synthetic             one batch that is already on the device: the limit of the device
files                 a file per sample, ``torch.load`` in a DataLoader
lmdb-blosc            LMDB + Blosc in a DataLoader
memmap                mapped raw values in a DataLoader
tensilo               ``tensilo.torch.Loader``, which decodes on the CPU
tensilo-device        ``tensilo.torch.Loader(device="cuda")``
tensilo-resident      ``tensilo.cuda.ResidentDataset``
====================  ================================================================================

The table shows steps per second; the share of time that the device is busy, if a step takes as long as with synthetic
data; the CPU time of all processes per step; and the stored bytes per step.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import data
import measure
import peers
import plot
import torch
from peers.common import Row, Spec
from peers.tensors import collate, torch_loader

BATCH_SIZE = 256
BANDS = 80
WARM_UP_STEPS = 20
ROWS = ["synthetic", "files", "lmdb-blosc", "memmap", "tensilo", "tensilo-device", "tensilo-resident"]


def options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", nargs="+", choices=ROWS, default=ROWS, help="ways to run (default: all)")
    parser.add_argument("--device", default="cuda", help="cuda, cuda:1, or cpu for a smoke test")
    parser.add_argument("--samples", type=int, default=16384)
    parser.add_argument("--seconds", type=float, default=5.0, help="duration of each measurement")
    parser.add_argument("--workers", type=int, default=os.cpu_count() - 1, help="workers, or decode threads")
    parser.add_argument("--width", type=int, default=256, help="channels of the model")
    parser.add_argument("--data", default="", help="folder of the real data (default: synthetic data)")
    parser.add_argument("--work", help="folder to keep files in for the next run (default: temporary)")
    parser.add_argument("--output", default=Path(__file__).parent / "results", help="folder of table and plot")
    parser.add_argument("--row", help=argparse.SUPPRESS)
    return parser.parse_args()


class Files(Row):
    """A file per sample."""

    def write(self, source, folder):
        for i in range(len(source)):
            (column,) = source.columns
            torch.save(torch.from_numpy(source[i][column.name].copy()), f"{folder}/{i}.pt")

    def loader(self, folder, spec):
        return torch_loader(_FilesDataset(folder, spec.columns), spec)


class _FilesDataset:
    def __init__(self, folder, columns):
        self.folder, self.columns = folder, columns
        self.count = len(os.listdir(folder))

    def __len__(self):
        return self.count

    def __getitems__(self, indices):
        (column,) = self.columns
        return collate([{column.name: torch.load(f"{self.folder}/{i}.pt").numpy()} for i in indices], self.columns)


def stored_as(name):
    """Returns the row that writes the files of a way; None if it needs no files."""
    if name == "synthetic":
        return None, None
    if name == "files":
        return "files", Files()
    written = "tensilo" if name.startswith("tensilo") else name
    return written, peers.rows()[written]


def memory_of(device):
    """Returns the device of tensors; the CPU if the GPU is emulated."""
    return "cpu" if "TENSILO_EMULATED_GPU" in os.environ else device


def batches(name, folder, spec, device):
    """Yields the batches of consecutive epochs on the device."""
    memory = memory_of(device)
    if name == "synthetic":
        mel = torch.randn(spec.batch_size, 200, BANDS, device=memory).to(torch.bfloat16)
        while True:
            yield mel
    column = spec.columns[0].name
    if name == "tensilo-resident":
        from tensilo.cuda import ResidentDataset

        resident = ResidentDataset(f"{folder}/data/", column, device=device, pad={column: 0})
        while True:
            order = torch.randperm(len(resident), device=resident.device)
            for indices in order.split(spec.batch_size)[:-1]:
                yield resident.gather(indices)[column]
    if name == "tensilo-device":
        from tensilo.torch import Loader

        loader = Loader(
            f"{folder}/data/", spec.batch_size, device=device, order="shuffled", pad={column: 0},
            decode_threads=max(spec.workers, 1),
        )  # fmt: skip
        while True:
            for batch in loader:
                yield batch[column]
    loader = stored_as(name)[1].loader(folder, spec)
    loader.pin_memory = memory != "cpu"
    while True:
        for batch in loader:
            yield batch[column].to(memory, non_blocking=True)


class Model(torch.nn.Module):
    """Predicts the pitch of each frame."""

    def __init__(self, width):
        super().__init__()
        self.layers = torch.nn.Sequential(
            torch.nn.Conv1d(BANDS, width, 5, padding=2),
            torch.nn.ReLU(),
            torch.nn.Conv1d(width, width, 5, padding=2),
            torch.nn.ReLU(),
            torch.nn.Conv1d(width, 1, 1),
        )

    def forward(self, mel):
        return self.layers(mel.transpose(1, 2))[:, 0]


def train(name, folder, source, chosen):
    """Measures steps per second."""
    device = memory_of(chosen.device)
    torch.manual_seed(1)
    dtype = torch.float32 if device == "cpu" else torch.bfloat16
    model = Model(chosen.width).to(device, dtype)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    bands = torch.arange(BANDS, device=device, dtype=dtype)
    spec = Spec(source.columns, workers=chosen.workers, batch_size=BATCH_SIZE)
    feed = batches(name, folder, spec, chosen.device)

    def step():
        mel = next(feed).to(dtype)
        with torch.no_grad():
            pitch = (mel.softmax(2) * bands).sum(2) / BANDS
        loss = torch.nn.functional.mse_loss(model(mel), pitch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    def synchronize():
        if device != "cpu":
            torch.cuda.synchronize(device)

    begun = time.perf_counter()
    for _ in range(WARM_UP_STEPS):
        step()
        if time.perf_counter() - begun > chosen.seconds:
            break
    synchronize()
    steps, begun, processor = 0, time.perf_counter(), measure.cpu_seconds()
    while time.perf_counter() - begun < chosen.seconds:
        step()
        steps += 1
    synchronize()
    elapsed = time.perf_counter() - begun
    found = {"steps_per_second": steps / elapsed, "cpu_ms_per_step": (measure.cpu_seconds() - processor) / steps * 1e3}
    print(json.dumps(found), flush=True)
    os._exit(0)  # do not wait for workers


def main():
    chosen = options()
    with tempfile.TemporaryDirectory() as temporary:
        work = Path(chosen.work or temporary)
        folder = work / "source"
        if not (folder / "layout.json").exists():
            data.make("mel", chosen.samples, folder, chosen.data or None)
        source = data.Source(folder)
        if chosen.row:
            train(chosen.row, str(work / (stored_as(chosen.row)[0] or "")), source, chosen)
        table(chosen, work, source)


def table(chosen, work, source):
    """Runs all ways, and writes the results."""
    rows = []
    for name in ["synthetic", *(name for name in chosen.rows if name != "synthetic")]:
        written, row = stored_as(name)
        missing = row.missing() if row else []
        if missing:
            print(f"{name}: not run: {', '.join(missing)} is not installed")
            continue
        if row and not (work / written).exists():
            (work / written).mkdir()
            row.write(source, str(work / written))
        if row:
            measure.warm(work / written)
        command = [sys.executable, __file__, *sys.argv[1:], "--row", name, "--work", str(work)]
        result = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        if result.returncode:
            print(f"{name}: failed")
            continue
        found = {"label": name, **json.loads(result.stdout.splitlines()[-1])}
        stored = measure.stored_bytes(work / written) / len(source) * BATCH_SIZE if row else 0
        found |= {
            "stored_bytes_per_step": stored,
            "busy": found["steps_per_second"] / (rows[0] if rows else found)["steps_per_second"],
        }
        rows.append(found)
        print(name, found, flush=True)
    where = "the CPU" if memory_of(chosen.device) == "cpu" else torch.cuda.get_device_name(chosen.device)
    lines = [
        f"{len(source)} samples ({source.origin}) in batches of {BATCH_SIZE} on {where}, {chosen.workers} workers:",
        "",
        "| fed by | steps/s | device busy | CPU ms/step | stored MB/step |",
        "|---|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['label']} | {row['steps_per_second']:.1f} | {row['busy']:.0%} | {row['cpu_ms_per_step']:.1f} "
            f"| {row['stored_bytes_per_step'] / 1e6:.2f} |"
        )
    output = Path(chosen.output)
    output.mkdir(parents=True, exist_ok=True)
    (output / "training.md").write_text("\n".join(lines) + "\n")
    (output / "training.json").write_text(json.dumps(rows))
    print("\n".join(lines))
    try:
        plot.plot("A small model on log-mel", rows, output / "training.svg")
    except ImportError:
        print("no plot: matplotlib is not installed")


if __name__ == "__main__":
    main()
