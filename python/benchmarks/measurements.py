"""The measurements of one row, each in a separate process.

Each result is printed as a line of JSON at once, so that a time limit loses only later results.
"""

import gc
import json
import os
import sys
import time

import data
import gather
import measure
import numpy as np
import peers
import torch
from peers.common import Spec
from peers.tensors import TORCH_DTYPES

WARM_UP_SECONDS = 0.5
WINDOWS = 5
STEP_SECONDS = 0.005
STEPS = 100


def say(**found):
    """Prints a result as JSON."""
    print(json.dumps(found), flush=True)


def main():
    arguments = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    row = peers.rows()[arguments["row"]]
    globals()[f"run_{arguments['what']}"](row, arguments)
    say(finished=True)


def spec_of(source, arguments):
    names = ("order", "workers", "batch_size", "rank", "world")
    return Spec(source.columns, **{name: arguments[name] for name in names if name in arguments})


def run_write(row, arguments):
    """Writes a data set, and compares the first batch of a sequential epoch with its source."""
    source = data.Source(arguments["source"])
    start = time.perf_counter()
    row.write(source, arguments["folder"])
    say(write_seconds=time.perf_counter() - start, stored_bytes=measure.stored_bytes(arguments["folder"]))
    spec = Spec(source.columns, "sequential", workers=1, batch_size=arguments["batch_size"])
    batch = next(iter(row.loader(arguments["folder"], spec)))
    check(batch, spec)
    for i in range(spec.batch_size):
        sample = source[i]
        for column in source.columns:
            check_sample(batch[column.name], i, sample[column.name], column)


def check(batch, spec):
    """Fails unless a batch has the expected columns, types and shapes."""
    for column in spec.columns:
        values = batch[column.name]
        if column.dtype == "text":
            is_right = isinstance(values, list) and len(values) == spec.batch_size
        else:
            shape = [spec.batch_size, *column.shape]
            is_right = values.dtype == TORCH_DTYPES[column.dtype] and len(values.shape) == len(shape)
            is_right &= all(expected in (None, got) for expected, got in zip(shape, values.shape, strict=False))
        if not is_right:
            raise SystemExit(f"wrong batch: {column} came as {getattr(values, 'shape', values)}")


def check_sample(batch, i, sample, column):
    """Fails unless a sample of a batch has the bits of its source."""
    if column.dtype == "text":
        is_right = batch[i] == sample
    else:
        bits = batch[i].view(torch.int16) if column.dtype == "bf16" else batch[i]
        bits = bits.numpy()
        is_right = np.array_equal(bits[: len(sample)], sample) and not bits[len(sample) :].any()
    if not is_right:
        raise SystemExit(f"wrong sample {i} of {column.name}")


class Endless:
    """The batches of consecutive epochs."""

    def __init__(self, loader):
        self.loader, self.iterator, self.epochs = loader, iter(loader), 0

    def next(self):
        batch = next(self.iterator, None)
        if batch is None:
            self.epochs += 1
            self.iterator = iter(self.loader)
            batch = next(self.iterator)
        return batch


def run_epoch(row, arguments):
    """Measures samples per second, CPU time, memory, the first batch, and a training step."""
    source = data.Source(arguments["source"])
    spec = spec_of(source, arguments)
    folder = arguments["folder"]
    measure.warm(folder)
    is_cold = arguments["cache"] == "cold"
    if is_cold:
        measure.drop(folder)
    start = time.perf_counter()
    loader = row.loader(folder, spec)
    batches = Endless(loader)
    first = batches.next()
    say(first_batch_ms=(time.perf_counter() - start) * 1e3)
    check(first, spec)
    count, rates = rate_of(batches, spec, arguments["seconds"], len(source) if is_cold else None)
    say(**count, samples_per_second=float(np.median(rates)), rates=rates, is_cold=is_cold)
    if not is_cold:
        say(**step_stall(batches, first, spec))
    if arguments.get("resumes"):
        del loader, batches
        gc.collect()
        resume(row, folder, spec, len(source))


def rate_of(batches, spec, seconds, limit):
    """Returns counts, and the samples per second in each of several windows of time.

    With a cold cache, each sample is read only once, so ``limit`` samples are the whole measurement.
    """
    taken = 0
    end = time.perf_counter() + (0 if limit else WARM_UP_SECONDS)
    while time.perf_counter() < end:
        batches.next()
    busy, cpu, start = measure.busy_seconds(), measure.cpu_seconds(), time.perf_counter()
    rates, window_start, window_taken = [], start, 0
    while True:
        check(batches.next(), spec)
        taken += spec.batch_size
        now = time.perf_counter()
        if now - window_start >= seconds / WINDOWS:
            rates.append((taken - window_taken) / (now - window_start))
            window_start, window_taken = now, taken
        if now - start >= seconds or (limit and taken + 4 * spec.batch_size > limit):
            break
    elapsed = time.perf_counter() - start
    cpu, busy = measure.cpu_seconds() - cpu, measure.busy_seconds() - busy
    pss, anonymous = measure.memory()
    found = {
        "samples": taken,
        "seconds": elapsed,
        "epochs": batches.epochs,
        "cpu_us_per_sample": cpu / taken * 1e6,
        # The share of the machine that other processes used.
        "others_percent": max(busy - cpu, 0) / elapsed / os.cpu_count() * 100,
        "pss_bytes": pss,
        "pss_anonymous_bytes": anonymous,
    }
    return found, rates if rates and not limit else [taken / elapsed]


def step_stall(batches, example, spec):
    """Returns how much longer a training step of 5 ms takes with this loader than without one."""
    column = next(column for column in spec.columns if column.dtype != "text")
    step, width = training_step(inputs(example, column))
    baseline = [timed(step, inputs(example, column)) for _ in range(STEPS)]
    for _ in range(4):
        batches.next()
    waited = working = 0.0
    start = time.perf_counter()
    steps = 0
    while steps < STEPS and time.perf_counter() - start < 10:
        begin = time.perf_counter()
        batch = batches.next()
        ready = time.perf_counter()
        step(inputs(batch, column))
        waited, working, steps = waited + ready - begin, working + time.perf_counter() - ready, steps + 1
    baseline = float(np.mean(baseline))
    return {
        "step_alone_ms": baseline * 1e3,
        "step_waited_ms": waited / steps * 1e3,
        "step_slowed_ms": (working / steps - baseline) * 1e3,
        "stall_ms": ((waited + working) / steps - baseline) * 1e3,
        "steps": steps,
        "model_width": width,
    }


def inputs(batch, column):
    """Returns the first 128 values of each sample."""
    values = batch[column.name]
    return values.reshape(len(values), -1)[:, :128]


def training_step(example):
    """Returns a step of a small model that takes about 5 ms on one thread, and its width."""
    width = 64
    while True:
        step = _step_of_width(width, example.shape[1])
        for _ in range(10):
            step(example)
        seconds = min(timed(step, example) for _ in range(20))
        if seconds > STEP_SECONDS * 0.9 or width > 1 << 14:
            return step, width
        width = int(width * min(max(STEP_SECONDS / seconds, 1.1), 2))


def _step_of_width(width, features):
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(128, width), torch.nn.ReLU(), torch.nn.Linear(width, 16))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)

    def step(values):
        values = values.float()
        if values.shape[1] < 128:
            values = torch.nn.functional.pad(values, (0, 128 - values.shape[1]))
        loss = model(values).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    return step


def timed(step, values):
    start = time.perf_counter()
    step(values)
    return time.perf_counter() - start


def resume(row, folder, spec, count):
    """Measures the time from a state at 50 and 99 % of an epoch to the next batch."""
    loader = row.loader(folder, spec)
    batches = iter(loader)
    steps = count // spec.batch_size
    states, taken = {}, 0
    for percent in (50, 99):
        while taken < min(steps * percent // 100, steps - 2):
            next(batches)
            taken += 1
        state = json.dumps(row.state(loader), default=_as_text)
        states[percent] = state, next(batches)
        taken += 1
    del batches, loader
    gc.collect()
    for percent, (state, expected) in states.items():
        loader = row.loader(folder, spec)
        start = time.perf_counter()
        row.resume(loader, _state(state))
        batch = next(iter(loader))
        elapsed = time.perf_counter() - start
        say(**{f"resume_{percent}_ms": elapsed * 1e3, f"resume_{percent}_exact": is_same(batch, expected, spec)})
        del loader
        gc.collect()


def _as_text(value):
    """Encodes the bytes in a state for JSON."""
    if isinstance(value, bytes):
        return {"bytes": value.hex()}
    return value.item()


def _state(text):
    state = json.loads(text)
    return bytes.fromhex(state["bytes"]) if isinstance(state, dict) and set(state) == {"bytes"} else state


def is_same(batch, expected, spec):
    """Returns whether two batches have the same samples in the same order."""
    return all(
        batch[column.name] == expected[column.name]
        if column.dtype == "text"
        else torch.equal(batch[column.name], expected[column.name])
        for column in spec.columns
    )


def run_rank(row, arguments):
    """Takes batches of one rank, from a state if there is one, and reports their samples and the new state."""
    source = data.Source(arguments["source"])
    spec = spec_of(source, arguments)
    loader = row.loader(arguments["folder"], spec)
    if arguments.get("state") is not None:
        row.resume(loader, _state(arguments["state"]))
    numbers = []
    batches = iter(loader)
    for taken, batch in enumerate(batches, 1):
        numbers += data.numbers_of(batch)
        if taken == arguments.get("steps"):
            break
    say(numbers=numbers, state=json.dumps(row.state(loader), default=_as_text))


def run_cycles(row, arguments):
    """Creates a loader, takes three batches and drops it, repeatedly."""
    source = data.Source(arguments["source"])
    spec = spec_of(source, arguments)
    # The garbage collector then scans only new objects, not all of PyTorch.
    gc.freeze()
    for cycle in range(arguments["cycles"]):
        loader = row.loader(arguments["folder"], spec)
        batches = iter(loader)
        for _ in range(3):
            next(batches)
        del batches, loader
        gc.collect()
        say(cycle=cycle + 1)


def run_gather(row, arguments):
    """Measures the overhead of a batch over gathering its bytes."""
    say(**gather.measured(arguments["folder"]))
