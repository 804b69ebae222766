"""Measures the overhead of ``Column.take`` over the same gather in Rust (``tensilo bench``)."""

import json
import shutil
import subprocess
import sys
import time

import numpy as np

BATCH_SIZE = 256
COUNT = 65536
PROFILES = ("raw", "fast", "balanced")


def measured(folder):
    """Returns the median microseconds of a batch of 256 samples."""
    import torch

    import tensilo as ts

    shutil.rmtree(folder, ignore_errors=True)
    random = np.random.default_rng(1)
    values = torch.from_numpy(random.standard_normal((COUNT, 384), np.float32)).bfloat16()
    small = torch.zeros(COUNT, dtype=torch.bfloat16)
    indices = [random.integers(0, COUNT, BATCH_SIZE) for _ in range(64)]
    found = {}
    for profile in PROFILES:
        path = f"{folder}-{profile}.tsl"
        schema = {"768 B": ts.tensor("bf16", (384,)), "2 B": ts.tensor("bf16", ())}
        with ts.Writer(path, schema, profile=profile, overwrite=True) as writer:
            writer.write(**{"768 B": values, "2 B": small})
        for name in schema:
            column = ts.open(path)[name]
            python, rust = microseconds(lambda i: column.take(i), indices), in_rust(path, name)
            found |= {f"{profile}, {name}: take": python, f"{profile}, {name}: over Rust": python - rust}
    lists, tensors = [i.tolist() for i in indices], [torch.from_numpy(i) for i in indices]
    out = torch.empty((BATCH_SIZE, 384), dtype=torch.bfloat16)
    array = values.view(torch.int16).numpy()
    value = ts.open(f"{folder}-raw.tsl")["768 B"]
    return found | {
        "raw, 768 B: take, of a list": microseconds(lambda i: value.take(i), lists),
        "raw, 768 B: take, of a tensor": microseconds(lambda i: value.take(i), tensors),
        "raw, 768 B: take, to a tensor": microseconds(lambda i: torch.from_dlpack(value.take(i)), indices),
        "raw, 768 B: take, out=": microseconds(lambda i: value.take(i, out=out), indices),
        "NumPy, 768 B: array[indices]": microseconds(lambda i: array[i], indices),
    }


def microseconds(call, inputs):
    """Returns the median time of a call."""
    times = []
    for _ in range(40):
        for one in inputs:
            start = time.perf_counter_ns()
            call(one)
            times.append(time.perf_counter_ns() - start)
    return float(np.median(times)) / 1e3


def in_rust(path, column):
    """Returns the microseconds of a batch in the CLI."""
    options = ["--column", column, "--batch", str(BATCH_SIZE), "--io", "mmap", "--json", "--quiet"]
    done = subprocess.run([sys.executable, "-m", "tensilo", "bench", path, *options], capture_output=True, check=True)
    return BATCH_SIZE / json.loads(done.stdout)["samples_per_s"] * 1e6
