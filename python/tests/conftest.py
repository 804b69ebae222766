"""Data and fixtures shared by the tests."""

import importlib
import os
import pathlib

import numpy as np
import pytest

import tensilo as ts
from tensilo import _gpu

ROOT = pathlib.Path(__file__).resolve().parents[2]
# `.ci/full` sets this: optional packages must be installed
REQUIRED = os.environ.get("TENSILO_REQUIRE", "").split()
# The allocator of the address sanitizer does not take its locks for a fork: a lock that another thread
# holds stays locked in the child.
forks = pytest.mark.skipif("TENSILO_SANITIZER" in os.environ, reason="the sanitizer's allocator is not safe to fork")


def optional(name):
    """Imports a package, or skips the tests of the module unless it is required."""
    if name.split(".")[0] in REQUIRED:
        return importlib.import_module(name)
    return pytest.importorskip(name)


@pytest.fixture(scope="session")
def speech(tmp_path_factory):
    """The bundled file of speech features, converted."""
    path = tmp_path_factory.mktemp("speech") / "speech.tsl"
    return ts.convert(ROOT / "tests/data/speech.parquet", path, bf16=True)


COUNT = 500
SCHEMA = {
    "emb": ts.tensor("bf16", (8,), cast_from="f32"),
    "mel": ts.tensor("f32", (None, 3)),
    "text": ts.utf8(nullable=True),
    "image": ts.binary(),
    "words": ts.list_(ts.utf8(nullable=True)),
    "label": ts.tensor("i64"),
}


def sample(i):
    """Returns sample ``i`` of the mixed data."""
    return {
        "emb": np.arange(8, dtype=np.float32) + i % 200,  # exact in bf16
        "mel": np.full((i % 5, 3), i, dtype=np.float32),
        "text": None if i % 7 == 0 else f"text {i} \N{GREEK SMALL LETTER BETA}",
        "image": bytes([i % 256]) * (i % 4),
        "words": [None if k == 1 else f"w{k}" for k in range(i % 3)],
        "label": i,
    }


def columns(samples):
    """Returns samples column by column."""
    return {name: [one[name] for one in samples] for name in SCHEMA}


@pytest.fixture(scope="session")
def mixed_path(tmp_path_factory):
    """A dataset of several files with every kind of column."""
    path = tmp_path_factory.mktemp("mixed") / "mixed"
    with ts.Writer(path, SCHEMA, shard_bytes=4096, metadata={"made": "here"}) as writer:
        for start in range(0, COUNT, 50):
            writer.write(**columns([sample(i) for i in range(start, start + 50)]))
    return path


@pytest.fixture
def mixed(mixed_path):
    """The same, open."""
    return ts.open(mixed_path)


def assert_is_sample(row, i):
    """Asserts that a row is sample ``i`` of the mixed data."""
    expected = sample(i)
    np.testing.assert_array_equal(row["emb"].numpy(dtype="float32"), expected["emb"])
    np.testing.assert_array_equal(row["mel"].numpy(), expected["mel"])
    rest = {name: row[name] for name in ("text", "image", "words", "label")}
    assert rest == {name: expected[name] for name in rest}


@pytest.fixture
def gpu(monkeypatch):
    """Returns the GPU with the number in `TENSILO_GPU`, or an emulated one with host memory."""
    if "TENSILO_GPU" in os.environ:
        return _gpu.opened(int(os.environ["TENSILO_GPU"]))
    monkeypatch.setenv("TENSILO_EMULATED_GPU", "1")
    monkeypatch.setattr(_gpu, "_opened", {})
    try:
        found = _gpu.opened(0)
    except ts.TensiloError:
        found = None
    if found is None or not found.is_emulated:
        assert "emulator" not in REQUIRED
        pytest.skip("the extension has no emulated GPU")
    return found


@pytest.fixture
def ragged(tmp_path):
    """Columns of many kinds, with nulls."""
    path = tmp_path / "ragged.tsl"
    schema = {
        "image": ts.tensor("u8", (None, None, 3)),
        "mel": ts.tensor("bf16", (None, 4), cast_from="f32"),
        "maybe": ts.tensor("f32", (2,), nullable=True),
        "wave": ts.tensor("i16", (None,), nullable=True),
        "flag": ts.tensor("bool"),
        "tokens": ts.list_(ts.tensor("i32")),
        "name": ts.utf8(),
    }
    random = np.random.default_rng(1)
    with ts.Writer(path, schema) as writer:
        writer.write(
            image=[random.integers(0, 255, (i % 3, 2, 3), np.uint8) for i in range(300)],
            mel=[np.full((i % 7, 4), i % 100, np.float32) for i in range(300)],
            maybe=[None if i % 5 == 0 else np.float32([i, -i]) for i in range(300)],
            wave=[None if i % 11 == 0 else np.arange(i % 9, dtype=np.int16) for i in range(300)],
            flag=[i % 3 == 0 for i in range(300)],
            tokens=[list(range(i % 4)) for i in range(300)],
            name=[f"sample {i}" for i in range(300)],
        )
    return path
