"""PyTorch datasets: each test creates small data and compares it bit for bit."""

import collections
import os

import numpy as np
import pytest

from imported import BF16, bits
from tensilo import importers


class MapStyle:
    """A map-style dataset of tuples; at module level, so that workers can import it."""

    def __init__(self, count, broken=None):
        self.count = count
        self.broken = broken

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        import torch

        if i == self.broken:
            raise RuntimeError("the source is broken")
        return torch.full((2, 3), float(i), dtype=torch.bfloat16), i % 3, f"t{i}"


def halved(sample):
    return sample[0] / 2, sample[1], sample[2]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_map_style_dataset(tmp_path, workers):
    pytest.importorskip("torch")
    options = {"names": ("x", "label", "text"), "num_workers": workers}
    ds = importers.from_torch_dataset(MapStyle(50), tmp_path / "out.tsl", transform=halved, **options)
    assert (ds.schema["x"].dtype, ds.schema["x"].shape) == ("bf16", (2, 3))
    for i, row in enumerate(ds):
        assert bits(row["x"]) == bits(np.full((2, 3), i / 2, BF16))
        assert (row["label"], row["text"]) == (i % 3, f"t{i}")
    with pytest.raises(RuntimeError, match="broken"):
        importers.from_torch_dataset(MapStyle(50, broken=40), tmp_path / "none.tsl", **options)
    assert os.listdir(tmp_path) == ["out.tsl"]


def test_samples_of_torch_datasets(tmp_path):
    torch = pytest.importorskip("torch")
    from torch.utils.data import IterableDataset, TensorDataset

    class Stream(IterableDataset):
        def __iter__(self):
            for i in range(4):
                yield {"x": torch.arange(i), "y": float(i)}

    ds = importers.from_torch_dataset(Stream(), tmp_path / "stream.tsl")
    assert [row["x"].tolist() for row in ds] == [[], [0], [0, 1], [0, 1, 2]]
    with pytest.raises(ValueError, match="map-style"):
        importers.from_torch_dataset(Stream(), tmp_path / "none.tsl", num_workers=1)
    tensors = TensorDataset(torch.arange(6.0).reshape(3, 2), torch.arange(3))
    with pytest.raises(ValueError, match="pass 2 names in names="):
        importers.from_torch_dataset(tensors, tmp_path / "none.tsl")
    with pytest.raises(ValueError, match="2 names in names= instead of 1"):
        importers.from_torch_dataset(tensors, tmp_path / "none.tsl", names="x")
    ds = importers.from_torch_dataset(tensors, tmp_path / "tensors.tsl", names=["x", "y"])
    assert ds["x"].take([2, 0]).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    pair = collections.namedtuple("pair", "a b")
    ds = importers.from_torch_dataset([pair(1, "x"), pair(2, "y")], tmp_path / "named.tsl")
    assert list(ds) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    ds = importers.from_torch_dataset([1.5, 2.5], tmp_path / "one.tsl", names="x")
    assert list(ds) == [{"x": 1.5}, {"x": 2.5}]


class Targets:
    """Detection targets: a list of dicts per image."""

    def __len__(self):
        return 40

    def __getitem__(self, i):
        import torch

        box = [{"box": torch.full((4,), float(k)), "label": f"{k}"} for k in range(i % 3)]
        return {"image": torch.full((2, 2), i, dtype=torch.uint8), "target": box}


@pytest.mark.parametrize("workers", [0, 2])
def test_targets_in_lists_of_dicts(tmp_path, workers):
    pytest.importorskip("torch")
    ds = importers.from_torch_dataset(Targets(), tmp_path / "out.tsl", num_workers=workers)
    assert ds.columns == ["image", "target.box", "target.label"]
    for i, row in enumerate(ds):
        assert row["target.label"] == [f"{k}" for k in range(i % 3)]
        assert [box.tolist() for box in row["target.box"]] == [[float(k)] * 4 for k in range(i % 3)]
