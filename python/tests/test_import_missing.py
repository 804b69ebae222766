"""Importers without the packages that their formats need."""

import sys

import pytest

from tensilo import importers


@pytest.mark.parametrize(
    ("module", "package", "call"),
    [
        ("h5py", "h5py", lambda: importers.from_hdf5("in", "out")),
        ("lmdb", "lmdb", lambda: importers.from_lmdb("in", "out")),
        ("datasets", "datasets", lambda: importers.from_hf([], "out")),
        ("torch.utils.data", "torch", lambda: importers.from_torch_dataset([], "out")),
        ("ml_dtypes", "ml_dtypes", lambda: importers.blosc_decoder((2,), "bf16")),
    ],
)
def test_packages_that_are_missing(monkeypatch, module, package, call):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(ImportError, match=f"pip install {package}"):
        call()
