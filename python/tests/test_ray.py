"""Datasets on a local Ray cluster of several nodes, whose workers are killed."""

import os
import pathlib
import random
import signal
import threading

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT, optional, sample
from tensilo import distributed

ray = optional("ray")
cluster_utils = pytest.importorskip("ray.cluster_utils")
trt = pytest.importorskip("tensilo.ray")

from rows import OPTIONS, ROWS, content, write_inputs  # noqa: E402, needs pyarrow

# warnings of Ray, not of this package
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster():
    """Three nodes with one CPU each."""
    args = {"num_cpus": 1, "object_store_memory": 80 << 20}
    cluster = cluster_utils.Cluster(initialize_head=True, head_node_args=args)
    for _ in range(2):
        cluster.add_node(**args)
    here = str(pathlib.Path(__file__).parent)
    path = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    env = {"PYTHONPATH": path, "SOURCE_DATE_EPOCH": "1"}
    ray.init(address=cluster.address, log_to_driver=False, runtime_env={"env_vars": env})
    yield cluster
    ray.shutdown()
    cluster.shutdown()


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return write_inputs(tmp_path_factory.mktemp("parquet"))


@pytest.fixture(autouse=True)
def no_clock(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")


def in_one_process(inputs, out):
    distributed.commit(out, map(distributed.run, distributed.plan(inputs, out, **OPTIONS)))
    return content(out)


def run_or_die(task):
    """Runs a task in a worker that is killed at a random time in two of three cases."""
    rng = random.Random(os.urandom(8))
    if rng.random() < 2 / 3:
        threading.Timer(rng.uniform(0, 0.02), os.kill, (os.getpid(), signal.SIGKILL)).start()
    fragment = distributed.run(task)
    if rng.random() < 1 / 3:
        os.kill(os.getpid(), signal.SIGKILL)  # the file is written, but the driver does not know it
    return fragment


def test_a_conversion_whose_workers_are_killed_gives_the_same_bytes(cluster, inputs, tmp_path):
    expected = in_one_process(inputs, tmp_path / "one")
    assert len(expected) > 8
    args = {"max_retries": -1, "max_calls": 1}
    found = trt.convert(inputs, tmp_path / "many", run=run_or_die, ray_remote_args=args, **OPTIONS)
    assert content(tmp_path / "many") == expected and len(found) == ROWS
    assert trt.convert(inputs, tmp_path / "again", **OPTIONS).id == found.id
    assert content(tmp_path / "again") == expected


def fail(task):
    if task.number == 3:
        raise ValueError("on purpose")
    return distributed.run(task)


def test_a_conversion_that_fails_leaves_no_version(cluster, inputs, tmp_path):
    with pytest.raises(ValueError, match="on purpose"):
        trt.convert(inputs, tmp_path / "train", run=fail, **OPTIONS)
    assert not (tmp_path / "train/manifest").exists()
    trt.convert(inputs, tmp_path / "train", **OPTIONS)
    assert content(tmp_path / "train") == in_one_process(inputs, tmp_path / "one")


def test_a_read_gives_all_samples_once(cluster, mixed_path):
    dataset = trt.read(mixed_path, override_num_blocks=7)
    assert dataset.count() == COUNT
    rows = sorted(dataset.take_all(), key=lambda row: row["label"])
    assert [row["label"] for row in rows] == list(range(COUNT))
    for i in (0, 1, 77, COUNT - 1):
        expected = sample(i)
        np.testing.assert_array_equal(rows[i]["emb"], expected["emb"])
        np.testing.assert_array_equal(np.array(list(rows[i]["mel"])).reshape(-1, 3), expected["mel"])
        assert (rows[i]["text"], rows[i]["image"]) == (expected["text"], expected["image"])
    labels = trt.read(ts.open(mixed_path), "label")
    assert labels.schema().names == ["label"] and labels.sum("label") == sum(range(COUNT))


def double(batch):
    return {"x": batch["label"] * 2, "emb": batch["emb"]}


def test_what_is_written_is_what_was_read(cluster, inputs, tmp_path):
    ts.convert(inputs, tmp_path / "train", **OPTIONS)
    ray.data.DataContext.get_current().execution_options.preserve_order = True
    dataset = trt.read(tmp_path / "train", ["label", "emb"], override_num_blocks=6).map_batches(double)
    written = trt.write(dataset, tmp_path / "new", casts={"emb": "bf16"})
    source = ts.open(tmp_path / "train")
    assert len(written) == ROWS and written.versions() == [1]
    assert written.schema["emb"].shape == (12,) and written.schema["emb"].dtype == "bf16"
    assert written["x"][:].tolist() == [2 * i for i in range(ROWS)]
    np.testing.assert_array_equal(written["emb"][:].numpy(dtype="f4"), source["emb"][:].numpy(dtype="f4"))
    with pytest.raises(FileExistsError):
        trt.write(dataset, tmp_path / "new")


def fail_at_the_end(batch):
    if ROWS - 1 in batch["label"]:
        raise ValueError("on purpose")
    return batch


def test_a_write_that_fails_leaves_no_version(cluster, inputs, tmp_path):
    ts.convert(inputs, tmp_path / "train", **OPTIONS)
    dataset = trt.read(tmp_path / "train", "label", override_num_blocks=4).map_batches(fail_at_the_end)
    with pytest.raises(Exception, match="on purpose"):
        trt.write(dataset, tmp_path / "new")
    assert not (tmp_path / "new/manifest").exists()


def test_lists_have_any_length_unless_it_is_declared(cluster, tmp_path):
    def rows(length):
        items = [{"x": [1.0] * length(i), "y": [[i]] * (i % 2), "z": ["a"]} for i in range(20)]
        return ray.data.from_items(items, override_num_blocks=2)

    same = trt.write(rows(lambda i: 3), tmp_path / "same")
    assert same.schema["x"].shape == (None,) and len(same.schema["y"].levels) == 1
    assert trt.write(rows(lambda i: 1 + i // 10), tmp_path / "differ").schema["x"].shape == (None,)
    assert trt.write(rows(lambda i: 3), tmp_path / "declared", shapes={"x": (3,)}).schema["x"].shape == (3,)
    with pytest.raises(Exception, match="'x'|\"x\""):
        trt.write(rows(lambda i: 1 + i // 10), tmp_path / "refused", shapes={"x": (1,)})
    assert not (tmp_path / "refused/manifest").exists()


def test_each_worker_of_a_training_has_its_share(cluster, inputs, tmp_path):
    ts.convert(inputs, tmp_path / "train", **OPTIONS)

    @ray.remote(num_cpus=1)
    class Worker:
        def __init__(self, path, rank, world_size):
            self.loader = ts.Loader(
                ts.open(path), 32, columns=["label"], seed=1, rank=rank, world_size=world_size, last_batch="exact"
            )

        def epoch(self):
            return [batch["label"].tolist() for batch in self.loader]

    workers = [Worker.remote(str(tmp_path / "train"), rank, 3) for rank in range(3)]
    epochs = ray.get([worker.epoch.remote() for worker in workers])
    assert len({len(batches) for batches in epochs}) == 1
    assert sorted(label for batches in epochs for batch in batches for label in batch) == list(range(ROWS))
