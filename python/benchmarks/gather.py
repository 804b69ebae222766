"""The cost of a batch above that of moving its bytes: ``Column.take`` of samples, and of tiny ones."""

import shutil
import time

import numpy as np

BATCH_SIZE = 256
COUNT = 65536
PROFILES = ("raw", "fast", "balanced")


def measured(folder):
    """Returns microseconds for a batch of 256 samples, in the median of many."""
    import torch

    import tensilo as ts

    shutil.rmtree(folder, ignore_errors=True)
    random = np.random.default_rng(1)
    values = torch.from_numpy(random.standard_normal((COUNT, 384), np.float32)).bfloat16()
    tiny = torch.zeros(COUNT, dtype=torch.bfloat16)
    indices = [random.integers(0, COUNT, BATCH_SIZE) for _ in range(64)]
    found = {}
    for profile in PROFILES:
        schema = {"value": ts.tensor("bf16", (384,)), "tiny": ts.tensor("bf16", ())}
        with ts.Writer(f"{folder}-{profile}.tsl", schema, profile=profile, overwrite=True) as writer:
            writer.write(value=values, tiny=tiny)
        dataset = ts.open(f"{folder}-{profile}.tsl")
        value, small = dataset["value"], dataset["tiny"]
        found |= {
            f"{profile}: take of 256 samples of 768 B": microseconds(lambda i: value.take(i), indices),
            f"{profile}: take of 256 samples of 2 B": microseconds(lambda i: small.take(i), indices),
            f"{profile}: take of 1 sample of 2 B": microseconds(lambda i: small.take(i[:1]), indices),
        }
    lists, tensors = [i.tolist() for i in indices], [torch.from_numpy(i) for i in indices]
    out = torch.empty((BATCH_SIZE, 384), dtype=torch.bfloat16)
    array = values.view(torch.int16).numpy()
    value = ts.open(f"{folder}-raw.tsl")["value"]
    return found | {
        "raw: the same, indices are a list": microseconds(lambda i: value.take(i), lists),
        "raw: the same, indices are a tensor": microseconds(lambda i: value.take(i), tensors),
        "raw: the same, as a tensor": microseconds(lambda i: torch.from_dlpack(value.take(i)), indices),
        "raw: the same, out=": microseconds(lambda i: value.take(i, out=out), indices),
        "NumPy: the same of an array in memory": microseconds(lambda i: array[i], indices),
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
