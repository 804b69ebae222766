"""Distributed conversion: the same bytes whatever fails, and a complete version or none."""

import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import tensilo as ts
from conftest import forks, optional
from tensilo import distributed

pa = optional("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from rows import OPTIONS, ROWS, content, table, write_inputs  # noqa: E402, needs pyarrow


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Input files of several row groups, whose boundaries do not match the data files."""
    return write_inputs(tmp_path_factory.mktemp("parquet"))


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    """Fixes the time, so that versions do not depend on when they are created."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")


def data(folder):
    """Returns the bytes of the data files, in order."""
    return [bytes for path, bytes in content(folder).items() if path.startswith("data/")]


def convert(inputs, out):
    """Converts in one process, and returns the content."""
    assert distributed.commit(out, map(distributed.run, distributed.plan(inputs, out, **OPTIONS))) == 1
    return content(out)


@pytest.fixture(scope="module")
def reference(inputs, tmp_path_factory):
    """The content of the dataset that a single process writes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SOURCE_DATE_EPOCH", "1")
        return convert(inputs, tmp_path_factory.mktemp("one") / "train")


def spawn():
    return ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("spawn"))


def test_a_plan_is_the_same_each_time(inputs, tmp_path):
    tasks = distributed.plan(inputs, tmp_path / "train", **OPTIONS)
    assert len(tasks) > 5
    assert tasks == distributed.plan(sorted(inputs.iterdir()), tmp_path / "train", threads=1, **OPTIONS)
    assert tasks == pickle.loads(pickle.dumps(tasks))
    with spawn() as pool:
        assert tasks == pool.submit(distributed.plan, inputs, tmp_path / "train", **OPTIONS).result()
    assert not (tmp_path / "train").exists()
    jobs = [tasks[0].job.number]
    for other in (
        {"bf16": False},
        {"shard_bytes": 5000},
        {"profile": "fast"},
        {"skip": "text"},
        {"null_elements": "nan"},
    ):
        jobs.append(distributed.plan(inputs, tmp_path / "train", **(OPTIONS | other))[0].job.number)
    assert len(set(jobs)) == len(jobs)


@pytest.mark.parametrize(
    "options",
    [
        OPTIONS,
        {"shard_bytes": 2000, "columns": ["label", "emb"], "profile": {"emb": "raw"}},
        {"shard_bytes": "8KiB", "skip": ["ragged", "text", "words"], "profile": "fast"},
        {"shard_bytes": "1GiB", "shapes": {"emb": (None,)}},
    ],
    ids=["all", "some columns", "equal samples", "one file"],
)
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_files_are_those_of_convert(inputs, tmp_path, options, form):
    if form == "arrow":
        for path in inputs.iterdir():
            with pa.ipc.new_file(tmp_path / (path.stem + ".arrow"), (rows := pq.read_table(path)).schema) as writer:
                writer.write_table(rows, max_chunksize=50)
        inputs = sorted(tmp_path.glob("*.arrow"))
    tasks = distributed.plan(inputs, tmp_path / "many", **options)
    fragments = [distributed.run(task) for task in random.Random(5).sample(tasks, len(tasks))]
    distributed.commit(tmp_path / "many", fragments)
    one = ts.convert(inputs, tmp_path / "one", **options)
    assert data(tmp_path / "many") == data(tmp_path / "one")
    many = ts.open(tmp_path / "many")
    assert many.schema == one.schema and many.id == one.id and len(many) == ROWS == one[-1]["label"] + 1


def test_two_processes_give_the_bytes_of_one(inputs, tmp_path, reference):
    tasks = distributed.plan(inputs, tmp_path / "train", **OPTIONS)
    with spawn() as pool:
        distributed.commit(tmp_path / "train", pool.map(distributed.run, tasks))
    assert content(tmp_path / "train") == reference


def run_and_die(tasks, seconds):
    """Runs tasks repeatedly in a process that is killed."""
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
    while True:
        for task in tasks:
            distributed.run(task)


@forks
@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_killed_workers_leave_nothing_that_differs(inputs, tmp_path, reference):
    out = tmp_path / "train"
    tasks = distributed.plan(inputs, out, **OPTIONS)
    names = {path.rsplit("/")[-1] for path in reference}
    rng = random.Random(1)
    context = multiprocessing.get_context("fork")
    for _ in range(20):
        own = rng.sample(tasks, 3)
        process = context.Process(target=run_and_die, args=(own, rng.uniform(0, 0.05)))
        process.start()
        process.join(60)
        assert process.exitcode == -signal.SIGKILL
        # each file is complete under its name, or does not exist
        assert all(reference[path] == found for path, found in content(out).items() if path.rsplit("/")[-1] in names)
        with pytest.raises(ValueError, match="neither a manifest nor"):
            ts.open(out)
    distributed.commit(out, map(distributed.run, tasks))
    assert content(out) == reference


def test_a_task_that_runs_twice_at_once_makes_one_file(inputs, tmp_path, reference):
    out = tmp_path / "train"
    tasks = distributed.plan(inputs, out, **OPTIONS)
    with ThreadPoolExecutor(6) as pool:
        fragments = list(pool.map(distributed.run, [task for task in tasks for _ in range(3)]))
    assert all(fragments[i] == fragments[i - i % 3] for i in range(len(fragments)))
    distributed.commit(out, fragments)
    assert content(out) == reference
    distributed.run(tasks[0])  # a straggler, after the version is published
    assert content(out) == reference


def test_a_commit_can_be_repeated(inputs, tmp_path, reference):
    out = tmp_path / "train"
    fragments = list(map(distributed.run, distributed.plan(inputs, out, **OPTIONS)))
    with ThreadPoolExecutor(4) as pool:
        versions = list(pool.map(lambda _: distributed.commit(out, reversed(fragments)), range(8)))
    assert versions == [1] * 8 and content(out) == reference
    ts.append(out, inputs / "0.parquet")
    before = content(out)
    assert distributed.commit(out, fragments) == 1 and content(out) == before


DRIVER = """
import os, signal, sys, threading
from tensilo import distributed
inputs, out, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
fragments = [distributed.run(task) for task in distributed.plan_append(out, inputs, shard_bytes=4096)]
if seconds < 0:
    os.kill(os.getpid(), signal.SIGKILL)
threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGKILL)).start()
distributed.commit(out, fragments)
threading.Event().wait()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no SIGKILL")
@pytest.mark.parametrize("seconds", [-1, 0, 0.0005, 0.002, 0.005, 0.5])
def test_a_killed_driver_leaves_the_version_before_or_after(inputs, tmp_path, seconds):
    out = tmp_path / "train"
    ts.convert(inputs / "0.parquet", out, shard_bytes="1MiB")
    source = str(inputs / "2.parquet")
    tasks = distributed.plan_append(out, source, shard_bytes=4096)
    done = subprocess.run([sys.executable, "-c", DRIVER, source, str(out), str(seconds)], check=False)
    assert done.returncode == -signal.SIGKILL
    found = ts.open(out)
    assert (found.version, len(found)) in ((1, 250), (2, 599))
    if seconds != 0:
        assert found.version == (1 if seconds < 0 else found.version)
    assert ts.verify(out).ok
    # another driver continues
    assert distributed.commit(out, map(distributed.run, tasks)) == 2
    after = ts.open(out)
    assert after.versions() == [1, 2] and after["label"][:].tolist() == [*range(250), *range(251, 600)]


def test_an_append_has_the_files_of_append(inputs, tmp_path):
    more = [inputs / "1.parquet", inputs / "2.parquet"]
    for name in ("one", "many"):
        ts.convert(inputs / "0.parquet", tmp_path / name, **OPTIONS)
    ts.append(tmp_path / "one", more, shard_bytes="8KiB")
    tasks = distributed.plan_append(tmp_path / "many", more, shard_bytes="8KiB")
    assert len(tasks) > 2
    assert distributed.commit(tmp_path / "many", map(distributed.run, tasks)) == 2
    assert data(tmp_path / "many") == data(tmp_path / "one")
    assert ts.verify(tmp_path / "many").ok


def test_another_writer_wins_and_garbage_is_found(inputs, tmp_path):
    out = tmp_path / "train"
    ts.convert(inputs / "0.parquet", out, **OPTIONS)
    before = content(out)
    fragments = list(map(distributed.run, distributed.plan_append(out, inputs / "1.parquet")))
    left = content(out).keys() - before.keys()
    assert len(left) == 1
    gc = [sys.executable, "-m", "tensilo", "dataset", "gc", str(out)]
    # the job works on the next version
    subprocess.run(gc, check=True, capture_output=True)
    assert left <= content(out).keys()
    ts.append(out, inputs / "2.parquet")
    with pytest.raises(ts.ConflictError):
        distributed.commit(out, fragments)
    assert ts.open(out).version == 2
    subprocess.run(gc, check=True, capture_output=True)
    assert not left & content(out).keys() and ts.verify(out).ok
    with pytest.raises(ts.ConflictError):
        distributed.commit(out, fragments)


def test_what_is_missing_or_wrong_is_refused(inputs, tmp_path):
    out = tmp_path / "train"
    tasks = distributed.plan(inputs, out, **OPTIONS)
    fragments = list(map(distributed.run, tasks))
    with pytest.raises(ValueError, match=r"1 of \d+ fragments are missing: 2;"):
        distributed.commit(out, fragments[:2] + fragments[3:])
    with pytest.raises(ValueError, match="there are no fragments"):
        distributed.commit(out, [])
    other = distributed.plan(inputs, out, **(OPTIONS | {"profile": "fast"}))
    with pytest.raises(ValueError, match="different jobs"):
        distributed.commit(out, [*fragments, distributed.run(other[0])])
    path = next(path for path in out.rglob("00001.tsl") if str(tasks[0].job.number) in str(path))
    path.rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="run its task again"):
        distributed.commit(out, fragments)
    assert distributed.run(tasks[1]) == fragments[1]
    distributed.commit(out, fragments)
    with pytest.raises(FileExistsError, match="the dataset already exists"):
        distributed.plan(inputs, out)
    with pytest.raises(ValueError, match="not a dataset with a manifest"):
        distributed.plan_append(tmp_path / "nothing", inputs)
    with pytest.raises(TypeError, match="write the table"):
        distributed.plan(table(0, 3), tmp_path / "new")


def test_an_input_that_was_replaced_is_refused(tmp_path):
    pq.write_table(table(0, 100), tmp_path / "in.parquet")
    tasks = distributed.plan(tmp_path / "in.parquet", tmp_path / "train", shard_bytes=4096)
    time.sleep(0.03)
    pq.write_table(table(100, 200), tmp_path / "in.parquet")
    with pytest.raises(ts.InputError, match=r"in.parquet.*replaced after"):
        distributed.run(tasks[0])
    assert (
        tasks[0].job.number
        != distributed.plan(tmp_path / "in.parquet", tmp_path / "train", shard_bytes=4096)[0].job.number
    )


def test_a_row_that_cannot_be_stored_is_named(tmp_path):
    rows = [[1.0, 2.0]] * 100 + [[1.0]] + [[1.0, 2.0]] * 100
    pq.write_table(pa.table({"x": pa.array(rows, pa.list_(pa.float32()))}), tmp_path / "in.parquet", row_group_size=30)
    tasks = distributed.plan(tmp_path / "in.parquet", tmp_path / "train", shard_bytes=400, shapes={"x": (2,)})
    assert len(tasks) == 5
    with pytest.raises(ts.InputError, match=r"100") as raised:
        distributed.run(tasks[2])
    assert "in.parquet" in str(raised.value)
