"""Processes and threads: fork, spawn, pickles, many threads, signals, what is left behind."""

import gc
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT, assert_is_sample, forks

METHODS = [pytest.param("fork", marks=forks), "spawn", "forkserver"]


def read_labels(dataset, queue):
    """Puts all labels and one sample; runs in another process."""
    assert_is_sample(dataset[3], 3)
    queue.put([row["label"] for row in dataset])


def put_batches(batches, queue):
    """Puts the labels of the remaining batches; runs in another process."""
    queue.put([batch["label"].tolist() for batch in batches])


def in_process(method, target, *arguments):
    """Runs a function in another process, and returns the object that it puts."""
    context = multiprocessing.get_context(method)
    queue = context.Queue()
    process = context.Process(target=target, args=(*arguments, queue))
    process.start()
    result = queue.get(timeout=60)
    process.join(60)
    assert process.exitcode == 0
    return result


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("state", ["not open", "open", "used"])
@pytest.mark.parametrize("io", ["auto", "pread"])
def test_a_dataset_works_in_another_process(mixed_path, method, state, io):
    dataset = ts.open(mixed_path, io=io)
    if state == "not open":
        dataset = pickle.loads(pickle.dumps(dataset))
    if state == "used":
        assert_is_sample(dataset[5], 5)
    assert in_process(method, read_labels, dataset) == list(range(COUNT))
    assert_is_sample(dataset[6], 6)


@forks
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_loader_goes_on_in_a_forked_process(mixed):
    loader = ts.Loader(mixed, 50, columns=["label"], order="sequential")
    batches = iter(loader)
    taken = [next(batches)["label"].tolist() for _ in range(3)]
    child = in_process("fork", put_batches, batches)
    rest = [batch["label"].tolist() for batch in batches]
    assert child == rest and len(taken) + len(rest) == 10


def test_a_pickle_is_small_and_knows_its_dataset(mixed, mixed_path, tmp_path):
    data = pickle.dumps(mixed)
    assert len(data) < 1024
    column = pickle.loads(pickle.dumps(mixed["label"]))
    assert column[7] == 7
    path = tmp_path / "x.tsl"
    for content in (1.0, 2.0):
        with ts.Writer(path, {"x": ts.tensor("f32")}, overwrite=True) as writer:
            writer.write(x=[content])
        if content == 1.0:
            data = pickle.dumps(ts.open(path))
    with pytest.raises(ValueError, match="not the dataset that was pickled"):
        len(pickle.loads(data))


def test_a_pickle_has_an_absolute_path_and_few_bytes_for_each_sample(mixed_path, monkeypatch, tmp_path):
    monkeypatch.chdir(mixed_path.parent)
    data = pickle.dumps(ts.open(mixed_path.name))
    chosen = pickle.dumps(ts.open(f"{mixed_path.name}").select(list(range(COUNT)) * 10))
    monkeypatch.chdir(tmp_path)
    assert pickle.loads(data)[3]["label"] == 3 and pickle.loads(chosen)[COUNT + 4]["label"] == 4
    assert len(chosen) < 8 * 10 * COUNT + 1024


def test_a_pickle_reads_its_version(tmp_path):
    for values in ([1, 2], [3]):
        with ts.Writer(f"{tmp_path}/set/", {"x": ts.tensor("i32")}) as writer:
            writer.write(x=values)
        if len(values) == 2:
            data = pickle.dumps(ts.open(tmp_path / "set"))
    assert len(ts.open(tmp_path / "set")) == 3 and len(pickle.loads(data)) == 2


def test_many_threads_share_a_dataset(mixed):
    errors = []

    def hammer(seed):
        random = np.random.default_rng(seed)
        try:
            for _ in range(60):
                indices = random.integers(0, COUNT, 20)
                columns = [None, ["label"], ["label", "mel"]][random.integers(0, 3)]
                assert mixed.take(indices, columns=columns)["label"].tolist() == indices.tolist()
                i = int(random.integers(0, COUNT))
                assert_is_sample(mixed[i], i)
                assert mixed["label"].take([i], dtype="i64").tolist() == [i]
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=hammer, args=(seed,)) for seed in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_threads_share_the_batches_of_an_iterator(mixed):
    batches = iter(ts.Loader(mixed, 5, columns=["label"], order="sequential"))
    seen = []

    def take():
        for batch in batches:
            seen.append(batch["label"].tolist())

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(label for labels in seen for label in labels) == list(range(COUNT))


def counted():
    """Returns the threads and the open files of this process."""
    return len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))


@pytest.mark.skipif(sys.platform != "linux", reason="counts what /proc shows")
def test_a_thousand_loaders_leave_nothing_behind(mixed_path):
    gc.collect()
    before = None
    for cycle in range(1000):
        dataset = ts.open(mixed_path)
        batches = iter(ts.Loader(dataset, 20, columns=["label"], decode_threads=2))
        for _ in range(cycle % 4):
            next(batches)
        del batches, dataset
        if cycle == 10:
            before = counted()
    threads, files = counted()
    assert threads <= before[0] and files <= before[1]


def resident():
    """Returns the resident memory of this process, in bytes."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.skipif("TENSILO_SANITIZER" in os.environ, reason="the sanitizer keeps memory that was freed")
@pytest.mark.parametrize("way", ["take", "rows", "loader", "arrow"])
def test_memory_stays_flat(mixed, way):
    count = int(os.environ.get("TENSILO_BATCHES", "4000"))
    done = 0

    def some(batches):
        nonlocal done
        if way == "loader":
            for batch in ts.Loader(mixed, 5, columns=["emb", "mel", "label"]):
                batch["mel"].ragged()
                batch["emb"].numpy(view="uint16")
                done += 1
            return
        for i in range(batches):
            batch = mixed.take([i % COUNT, 7])
            if way == "rows":
                batch.rows()
            elif way == "arrow":
                batch.__arrow_c_stream__()
                batch.__arrow_c_array__()
            else:
                batch["emb"].numpy(dtype="float32")
                batch["words"].tolist()
                batch["label"].__dlpack__(max_version=(1, 0))
            done += 1

    some(200)
    gc.collect()
    before = resident()
    while done < count:
        some(200)
    gc.collect()
    assert resident() - before < 8 << 20


WAITS = {
    "convert": "ts.convert([path] * 4000, out + '/x.tsl', profile='small')",
    "verify": "[ts.verify(path, deep=True) for _ in range(10**9)]",
    "loader": "[0 for _ in range(10**9) for batch in ts.Loader(ts.open(path), 1)]",
    "take": "[ts.open(path).take([0]) for _ in range(10**9)]",
    "long take": "import numpy\nds = ts.open(path)\n"
    "[ds.take(numpy.arange(3 * 10**6) % len(ds), columns=['tokens']) for _ in range(10**9)]",
    "inspect": "[ts.inspect(path) for _ in range(10**9)]",
    "draw": "[ts.draw_layout(path, verify=True) for _ in range(10**9)]",
    "salvage": "[ts.salvage(path) for _ in range(10**9)]",
    "open": "[ts.open([path] * 300) for _ in range(10**9)]",
    "dataset": "ts.convert([path] * 4000, out + '/set/', profile='small')",
}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a signal")
@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_every_wait(speech, tmp_path, wait):
    # a program that was started in the background ignores the signal by default
    asks = "import signal, sys, tensilo as ts\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program = f"{asks}path, out = sys.argv[1:]\nprint('ready', flush=True)\n{WAITS[wait]}"
    out = tmp_path / "out"
    out.mkdir()
    source = speech.uri if wait not in ("convert", "dataset") else str(parquet())
    child = subprocess.Popen(
        [sys.executable, "-c", program, source, str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.5)
        child.send_signal(signal.SIGINT)
        begun = time.monotonic()
        _, errors = child.communicate(timeout=30)
        assert "KeyboardInterrupt" in errors and time.monotonic() - begun < 10
    finally:
        child.kill()
    assert not [name for _, _, names in os.walk(out) for name in names]


def parquet():
    """Returns the bundled file of speech features."""
    from conftest import ROOT

    return ROOT / "tests/data/speech.parquet"


def test_the_program_is_that_of_the_command_line(speech):
    command = [sys.executable, "-m", "tensilo"]
    done = subprocess.run([*command, "verify", speech.uri], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout.startswith("ok:")
    done = subprocess.run([*command, "verify", "nothing.tsl"], capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "nothing.tsl" in done.stderr


def test_import_is_fast():
    program = "import time; begun = time.perf_counter(); import tensilo; print(time.perf_counter() - begun)"
    times = [float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5)]
    loaded = subprocess.check_output(
        [sys.executable, "-c", "import sys, tensilo; print(*sys.modules)"], text=True
    ).split()
    assert not {"numpy", "torch", "pyarrow"} & set(loaded)
    assert min(times) < 1  # generous, for a busy machine; `benchmarks/` has the real measurement
