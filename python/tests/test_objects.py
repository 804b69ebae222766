"""Datasets in an object store."""

import contextlib
import functools
import http.server
import pathlib
import pickle
import re
import threading
import warnings

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT, assert_is_sample
from tensilo import distributed


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serves folders, files, and single ranges of files."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = pathlib.Path(self.translate_path(self.path))
        found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        if not found or not path.is_file():
            super().do_GET()
            return
        data = path.read_bytes()
        first, last = found.groups()
        start = int(first) if first else max(len(data) - int(last), 0)
        end = min(int(last) + 1, len(data)) if first and last else len(data)
        self.send_response(206)
        self.send_header("Content-Range", f"bytes {start}-{end - 1}/{len(data)}")
        self.send_header("Content-Length", str(end - start))
        self.end_headers()
        self.wfile.write(data[start:end])

    def log_message(self, *args):
        """Prints nothing."""


@contextlib.contextmanager
def hosted(folder, handler=Handler):
    """Serves a folder, and yields its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def url(mixed_path):
    """The URL of the mixed data."""
    with hosted(mixed_path.parent) as root:
        yield f"{root}/{mixed_path.name}"


def test_samples_are_those_of_the_folder(url, mixed):
    remote = ts.open(url)
    assert len(remote) == COUNT
    assert remote.id == mixed.id
    for i in (0, 17, COUNT - 1):
        assert_is_sample(remote[i], i)
    taken = [remote["label"].take([3, 490, 3]).numpy(), mixed["label"].take([3, 490, 3]).numpy()]
    np.testing.assert_array_equal(*taken)


def test_a_file_is_opened_by_its_address(url, mixed_path):
    name = sorted(mixed_path.glob("data/*/*.tsl"))[0]
    one = ts.open(f"{url}/{name.relative_to(mixed_path)}")
    assert_is_sample(one[0], 0)


def test_another_process_opens_it_again(url):
    remote = ts.open(url)
    again = pickle.loads(pickle.dumps(remote))
    assert again.id == remote.id
    assert_is_sample(again[5], 5)


@pytest.mark.parametrize("order", ["sequential", "shuffled", "windowed"])
def test_a_loader_delivers_the_same_batches(url, mixed_path, order):
    def labels(source):
        loader = ts.Loader(source, 32, columns=["label"], seed=1, order=order)
        return np.concatenate([batch["label"].numpy() for batch in loader])

    np.testing.assert_array_equal(labels(url), labels(mixed_path))


def test_every_byte_is_checked(url):
    ts.verify(url).raise_if_damaged()


def test_what_is_not_there_is_an_error(url):
    with pytest.raises(FileNotFoundError, match=r"none\.tsl"):
        ts.open(f"{url}/none.tsl")
    with pytest.raises(ValueError, match="no bucket"):
        ts.open("s3:///x")
    with pytest.raises(ValueError, match="mmap works only for files, not for objects"):
        ts.open(url, io="mmap")


def test_inputs_of_conversions_are_objects(tmp_path):
    for i in range(3):
        np.save(tmp_path / f"{i}.npy", np.arange(8, dtype=np.int32).reshape(4, 2) + 8 * i)
    with hosted(tmp_path) as root:
        converted = ts.convert(f"{root}/*.npy", tmp_path / "all.tsl")
        assert ts.append(tmp_path / "all.tsl", [f"{root}/0.npy"]) == 4
        tasks = distributed.plan(f"{root}/*.npy", tmp_path / "train", shard_bytes=40)
        distributed.commit(tmp_path / "train", map(distributed.run, tasks))
        assert distributed.plan(f"{root}/*.npy", tmp_path / "other", shard_bytes=40)[0].job == tasks[0].job
        np.save(tmp_path / "2.npy", np.ones((4, 2), np.int32))
        assert distributed.plan(f"{root}/*.npy", tmp_path / "other", shard_bytes=40)[0].job != tasks[0].job
        with pytest.raises(FileNotFoundError, match=r"none\.npy"):
            ts.convert(f"{root}/none.npy", tmp_path / "none.tsl")
    expected = np.arange(24, dtype=np.int32).reshape(12, 2)
    np.testing.assert_array_equal(converted["array"].take(range(12)).numpy(), expected)
    np.testing.assert_array_equal(ts.open(tmp_path / "train")["array"].take(range(12)).numpy(), expected)


class Bucket(Handler):
    """Serves an S3 listing that contains a key that cannot be read."""

    def do_GET(self):
        if "list-type=2" not in self.path:
            super().do_GET()
            return
        entry = "<Contents><Key>{}</Key><LastModified>2026-11-25T00:00:00Z</LastModified><Size>9</Size></Contents>"
        keys = ("raw//b 'x'&#9;.npy", "raw/a.npy")
        body = f"<R>{''.join(map(entry.format, keys))}</R>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_keys_that_cannot_be_read_are_warned_of(tmp_path, monkeypatch):
    (tmp_path / "bucket/raw").mkdir(parents=True)
    np.save(tmp_path / "bucket/raw/a.npy", np.arange(3))
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "none"))
    text = r"^s3://bucket/raw//b 'x'\\t\.npy: skipped: a key with an empty component"
    with hosted(tmp_path, Bucket) as root:
        monkeypatch.setenv("AWS_ENDPOINT_URL", root)
        with pytest.warns(UserWarning, match=text) as warned:
            assert len(ts.convert("s3://bucket/raw/*.npy", tmp_path / "a.tsl")) == 3
        assert [warning.filename for warning in warned] == [__file__]
        with pytest.warns(UserWarning, match=text):
            assert ts.append(tmp_path / "a.tsl", "s3://bucket/raw/*.npy") == 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match=text):
                ts.convert("s3://bucket/raw/*.npy", tmp_path / "b.tsl")
            # an error takes precedence over a warning
            with pytest.raises(FileExistsError):
                ts.convert("s3://bucket/raw/*.npy", tmp_path / "a.tsl")


def test_a_file_of_arrays_can_be_one_sample(tmp_path):
    arrays = {"weight": np.arange(6, dtype=np.float32).reshape(2, 3), "bias": np.ones(2, np.float32)}
    np.savez(tmp_path / "layer.npz", **arrays)
    assert len(ts.convert(tmp_path / "layer.npz", tmp_path / "rows.tsl")) == 2
    one = ts.convert(tmp_path / "layer.npz", tmp_path / "one.tsl", file_is_sample=True)
    assert ts.append(tmp_path / "one.tsl", tmp_path / "layer.npz", file_is_sample=True) == 1
    for name, array in arrays.items():
        np.testing.assert_array_equal(one[0][name], array)
