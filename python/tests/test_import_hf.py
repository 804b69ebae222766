"""Hugging Face datasets: each test creates small data and compares it bit for bit."""

import os

import numpy as np
import pytest

import tensilo as ts
from imported import ODD_F32, bits
from tensilo import importers


def test_a_dataset_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets")
    import pyarrow as pa

    (tmp_path / "a.png").write_bytes(b"\x89PNG of a file")
    media = pa.struct({"bytes": pa.binary(), "path": pa.string()})
    features = datasets.Features(
        {
            "x": datasets.Sequence(datasets.Value("float32"), length=4),
            "h": datasets.Value("float16"),
            "tokens": datasets.Sequence(datasets.Value("int32")),
            "image": datasets.Image(),
            "audio": datasets.Audio(),
            "label": datasets.ClassLabel(names=["cat", "dog"]),
            "text": datasets.Value("string"),
        }
    )
    rows = 5
    table = pa.table(
        {
            "x": pa.FixedSizeListArray.from_arrays(np.tile(ODD_F32, rows), 4),
            "h": pa.array(np.arange(rows, dtype="f2")),
            "tokens": pa.array([list(range(i)) for i in range(rows)], pa.list_(pa.int32())),
            "image": pa.array(
                [{"bytes": b"image %d" % i, "path": None} for i in range(rows - 1)]
                + [{"bytes": None, "path": os.fspath(tmp_path / "a.png")}],
                media,
            ),
            "audio": pa.array([{"bytes": b"sound", "path": "s.wav"}] * (rows - 1) + [None], media),
            "label": pa.array([i % 2 for i in range(rows)]),
            "text": pa.array([*"abcd", None]),
        }
    )
    dataset = datasets.Dataset(table.cast(features.arrow_schema))
    calls = []
    ds = importers.from_hf(
        dataset,
        tmp_path / "out.tsl",
        metadata={"made": "by a test"},
        profile="small",
        progress=lambda *call: calls.append(call),
    )
    assert calls[0] == ("reading", 5, 5)
    assert ds.metadata["made"] == "by a test"
    assert "ClassLabel" in ds.metadata["huggingface"]
    assert bits(ds["x"].take(range(rows)).array()) == bits(np.tile(ODD_F32, (rows, 1)))
    assert ds["h"].take([4]).tolist() == [4.0]
    found = list(ds)
    assert [row["tokens"].tolist() for row in found] == [list(range(i)) for i in range(rows)]
    assert [row["image.bytes"] for row in found] == [
        b"image 0",
        b"image 1",
        b"image 2",
        b"image 3",
        b"\x89PNG of a file",
    ]
    assert found[4]["image.path"] == "a.png"
    assert [row["audio.bytes"] for row in found] == [b"sound"] * 4 + [None]
    assert [row["label"] for row in found] == [0, 1, 0, 1, 0]
    assert [row["text"] for row in found] == [*"abcd", None]
    # selected and reordered samples, and selected columns
    ds = importers.from_hf(dataset.select([3, 1]), f"{tmp_path}/some/", columns=["text", "label"], bf16=False)
    assert list(ds) == [{"text": "d", "label": 1}, {"text": "b", "label": 1}]
    assert sorted(os.listdir(tmp_path)) == ["a.png", "out.tsl", "some"]


def test_other_datasets_of_hugging_face(tmp_path):
    datasets = pytest.importorskip("datasets")
    train = datasets.Dataset.from_dict({"x": [1, 2]})
    with pytest.raises(TypeError, match=r"dataset\['train'\]"):
        importers.from_hf(datasets.DatasetDict(train=train), tmp_path / "out.tsl")
    with pytest.raises(TypeError, match="from_iterable"):
        importers.from_hf(train.to_iterable_dataset(), tmp_path / "out.tsl")
    importers.from_hf(train, tmp_path / "out.tsl")
    with pytest.raises(FileExistsError):
        importers.from_hf(train, tmp_path / "out.tsl")
    assert list(importers.from_iterable(train.to_iterable_dataset(), tmp_path / "b.tsl")) == [
        {"x": 1},
        {"x": 2},
    ]
    with pytest.raises(ts.InputError, match="no samples"):
        importers.from_hf(train.select([]), tmp_path / "none.tsl")
    images = datasets.Dataset.from_dict({"image": [os.fspath(tmp_path / "none.png")]})
    with pytest.raises(FileNotFoundError):
        importers.from_hf(images.cast_column("image", datasets.Image()), tmp_path / "none.tsl")
    assert sorted(os.listdir(tmp_path)) == ["b.tsl", "out.tsl"]
