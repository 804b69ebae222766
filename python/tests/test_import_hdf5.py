"""HDF5 files: each test creates small data and compares it bit for bit."""

import os

import numpy as np
import pytest

import tensilo as ts
from imported import ODD_BF16, ODD_F32, bits
from tensilo import importers


def test_hdf5_types(tmp_path):
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "in.h5"
    rng = np.random.default_rng(1)
    mel = np.tile(ODD_F32, (100, 2, 1))
    tokens = [rng.integers(0, 100, i % 7).astype("i4") for i in range(100)]
    texts = [f"text {i} ä" for i in range(100)]
    table = np.zeros(100, [("t", "f8"), ("v", "u1", (2,)), ("s", "S4")])
    table["t"], table["s"] = np.arange(100), b"ab"
    with h5py.File(path, "w") as file:
        file.create_dataset("a/mel", data=mel, chunks=(7, 1, 4), compression="gzip")
        file["a/bits"] = np.tile(ODD_BF16.view("<u2"), (100, 1)).astype(">u2")
        file["big"] = np.arange(100, dtype=">f4")
        file["flag"] = np.arange(100) % 2 == 0
        ragged = file.create_dataset("tokens", 100, h5py.vlen_dtype("i4"))
        for i, sample in enumerate(tokens):
            ragged[i] = sample
        file.create_dataset("text", data=texts, dtype=h5py.string_dtype())
        file["ascii"] = np.array([f"{i}".encode() for i in range(100)], "S6")
        file.create_dataset("words", data=[["a", "bc"]] * 100, dtype=h5py.string_dtype())
        file["opaque"] = np.array([b"\0\1\2"] * 100, "V3")
        file["table"] = table
    views = {"a/bits": "bf16"}
    ds = importers.from_hdf5(path, tmp_path / "out.tsl", views=views, profile="fast")
    found = {name: (column.dtype, column.shape, len(column.levels)) for name, column in ds.schema.items()}
    assert found == {
        "a/bits": ("bf16", (4,), 0),
        "a/mel": ("f32", (2, 4), 0),
        "ascii": ("utf8", (None,), 0),
        "big": ("f32", (), 0),
        "flag": ("bool", (), 0),
        "opaque": ("bytes", (None,), 0),
        "table.s": ("utf8", (None,), 0),
        "table.t": ("f64", (), 0),
        "table.v": ("u8", (2,), 0),
        "text": ("utf8", (None,), 0),
        "tokens": ("i32", (None,), 0),
        "words": ("utf8", (None,), 1),
    }
    for i, row in enumerate(ds):
        assert bits(row["a/mel"]) == bits(mel[i])
        assert bits(row["a/bits"]) == bits(ODD_BF16)
        assert bits(row["tokens"]) == bits(tokens[i])
        assert (row["big"], row["flag"], row["text"], row["ascii"]) == (i, i % 2 == 0, texts[i], str(i))
        assert (row["words"], row["opaque"], row["table.t"], row["table.s"]) == (
            ["a", "bc"],
            b"\0\1\2",
            i,
            "ab",
        )
    with h5py.File(path) as file:
        schema = {"mel": ts.tensor("bf16", (2, 4), cast_from="f32")}
        ds = importers.from_hdf5(file["a"], tmp_path / "group.tsl", columns=["mel"], schema=schema)
    assert ds.columns == ["mel"]
    assert importers.from_hdf5(path, tmp_path / "one.tsl", columns="big").columns == ["big"]
    # ml_dtypes drops the payload of NaN, and tensilo keeps its upper bits
    assert ds[5]["mel"].numpy(view="uint16").tolist() == [[0x7FC1, 0x7F80, 0x8000, 0]] * 2


def test_hdf5_batches_are_bounded_and_whole_chunks(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    from tensilo.importers import hdf5

    monkeypatch.setattr(hdf5, "BATCH_BYTES", 4000)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("x", data=np.arange(3000.0).reshape(300, 10), chunks=(30, 10))
        ragged = file.create_dataset("y", 1000, h5py.vlen_dtype("f8"))
        for i in range(1000):
            ragged[i] = np.full(0 if i < 100 else 50, i)
    dones = []

    def progress(phase, done, total):
        assert phase == "importing"
        assert total in (300, 1000)
        dones.append(done)

    importers.from_hdf5(tmp_path / "in.h5", tmp_path / "x.tsl", columns=["x"], progress=progress)
    assert dones == [30, 60, 90, 120, 150, 180, 210, 240, 270, 300]
    dones.clear()
    ds = importers.from_hdf5(tmp_path / "in.h5", tmp_path / "y.tsl", columns=["y"], progress=progress)
    assert np.diff(dones)[-10:-1].max() <= 10
    assert [len(row["y"].tolist()) for row in ds] == [0] * 100 + [50] * 900


def test_hdf5_complex_numbers_come_back(tmp_path):
    h5py = pytest.importorskip("h5py")
    values = (np.arange(12) - 1.5j * np.arange(12)[::-1]).astype("c8").reshape(4, 3)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["x"] = values
    ds = importers.from_hdf5(tmp_path / "in.h5", tmp_path / "out.tsl")
    assert ds["x"].dtype == "complex64"
    np.testing.assert_array_equal([row["x"] for row in ds], values)


def test_hdf5_inputs_that_do_not_fit(tmp_path):
    h5py = pytest.importorskip("h5py")
    path, out = tmp_path / "in.h5", tmp_path / "out.tsl"
    with h5py.File(path, "w") as file:
        file["x"], file["y"], file["scalar"] = np.arange(3), np.arange(4), 5
        file["latin"] = np.array([b"\xe4"] * 3, "S1")
        file["z/complex"] = np.zeros(3, "c16")
    with pytest.raises(ts.InputError, match="x 3, y 4"):
        importers.from_hdf5(path, out, columns=["x", "y"])
    with pytest.raises(ts.InputError, match="without dimensions"):
        importers.from_hdf5(path, out)
    with pytest.raises(ts.InputError, match="complex128 cannot be stored"):
        importers.from_hdf5(path, out, columns=["z/complex"])
    with pytest.raises(KeyError, match="no dataset 'z': the datasets are"):
        importers.from_hdf5(path, out, columns=["z"])
    with pytest.raises(KeyError, match="views: no column 'y': the columns are x"):
        importers.from_hdf5(path, out, columns=["x"], views={"y": "bf16"})
    with pytest.raises(ts.InputError, match="its elements cannot be viewed as bfloat16"):
        importers.from_hdf5(path, out, columns=["x"], views={"x": "bf16"})
    with pytest.raises(ts.InputError, match=r"samples 0\.\.3: .*utf-8.*tensilo.binary"):
        importers.from_hdf5(path, out, columns=["x", "latin"])
    assert os.listdir(tmp_path) == ["in.h5"]
    ds = importers.from_hdf5(path, out, columns=["latin"], schema={"latin": ts.binary()})
    assert ds[0] == {"latin": b"\xe4"}


def test_hdf5_filters_of_the_plugin(tmp_path):
    h5py = pytest.importorskip("h5py")
    hdf5plugin = pytest.importorskip("hdf5plugin")
    values = np.random.default_rng(1).random((50, 4), np.float32)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("x", data=values, **hdf5plugin.Bitshuffle(cname="zstd"))
    ds = importers.from_hdf5(tmp_path / "in.h5", f"{tmp_path}/out/")
    assert bits(ds["x"].take(range(50)).array()) == bits(values)


def files_of_one_dataset(h5py, folder):
    """Writes files that take values from other files, and returns their names."""
    for i in range(3):
        with h5py.File(folder / f"source{i}.h5", "w") as file:
            file["x"] = np.arange(4.0) + 10 * i
    layout = h5py.VirtualLayout((12,), "f8")
    for i in range(3):
        layout[4 * i : 4 * i + 4] = h5py.VirtualSource(f"source{i}.h5", "x", (8,))[:4]
    whole = h5py.VirtualLayout((12,), "f8")
    whole[:] = h5py.VirtualSource("virtual.h5", "v", (12,))
    with h5py.File(folder / "virtual.h5", "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
    with h5py.File(folder / "twice.h5", "w") as file:
        file.create_virtual_dataset("v", whole)
    with h5py.File(folder / "link.h5", "w") as file:
        file["v"] = h5py.ExternalLink("virtual.h5", "/v")
        file["alias"] = h5py.SoftLink("/v")
    return ["virtual.h5", "twice.h5", "link.h5"]


def test_hdf5_files_of_several(tmp_path):
    h5py = pytest.importorskip("h5py")
    for name in files_of_one_dataset(h5py, tmp_path):
        ds = importers.from_hdf5(tmp_path / name, tmp_path / "out.tsl", overwrite=True)
        assert ds.columns == ["v"]
        assert ds["v"][:].tolist() == [10 * (i // 4) + i % 4 for i in range(12)]
    # elements that were never written, or that no source is mapped to, are fill values
    layout = h5py.VirtualLayout((6,), "f8")
    layout[:2] = h5py.VirtualSource("source0.h5", "x", (4,))[::2]
    with h5py.File(tmp_path / "partial.h5", "w") as file:
        file.create_virtual_dataset("v", layout, fillvalue=-1)
        file.create_dataset("chunks", 6, "f8", chunks=(2,), fillvalue=7)[:2] = 1
    ds = importers.from_hdf5(tmp_path / "partial.h5", tmp_path / "out.tsl", overwrite=True)
    assert ds["v"][:].tolist() == [0, 2, -1, -1, -1, -1] and ds["chunks"][:].tolist() == [1, 1, 7, 7, 7, 7]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ("missing", "'x' in the file 'source1.h5', which cannot be opened"),
        ("no dataset", "'x' in the file 'source1.h5', which does not exist"),
        ("short", r"values up to \(4,\) from 'x' in the file 'source1.h5', whose shape is \(3,\)"),
    ],
)
def test_hdf5_sources_that_are_missing(tmp_path, damage, message):
    """HDF5 itself reads fill values for these."""
    h5py = pytest.importorskip("h5py")
    names = files_of_one_dataset(h5py, tmp_path)
    os.remove(tmp_path / "source1.h5")
    if damage != "missing":
        with h5py.File(tmp_path / "source1.h5", "w") as file:
            file["y" if damage == "no dataset" else "x"] = np.arange(3.0)
    for name in names:
        for options in ({}, {"columns": ["v"]}):
            with pytest.raises(ts.InputError, match=message) as caught:
                importers.from_hdf5(tmp_path / name, tmp_path / "out.tsl", **options)
            assert caught.value.column == "v"
    assert not (tmp_path / "out.tsl").exists()


def test_hdf5_links_to_nothing_and_external_files(tmp_path, monkeypatch):
    h5py = pytest.importorskip("h5py")
    monkeypatch.chdir(tmp_path)
    with h5py.File("in.h5", "w") as file:
        file["a"] = np.arange(4)
        file["g/soft"] = h5py.SoftLink("/nothing")
    with pytest.raises(ts.InputError, match="column 'g/soft': the link points to '/nothing', which does not exist"):
        importers.from_hdf5("in.h5", "out.tsl")
    assert len(importers.from_hdf5("in.h5", "a.tsl", columns=["a"])) == 4
    with pytest.raises(KeyError, match="no dataset 'b': the datasets are a\""):
        importers.from_hdf5("in.h5", "out.tsl", columns=["b"])
    with h5py.File("in.h5", "w") as file:
        file["x"] = h5py.ExternalLink("nothing.h5", "/a")
    for options in ({}, {"columns": ["x"]}):
        with pytest.raises(ts.InputError, match="points to '/a' in the file 'nothing.h5', which cannot be opened"):
            importers.from_hdf5("in.h5", "out.tsl", **options)
    with h5py.File("in.h5", "w") as file:
        parts = [("one.raw", 8, 16), ("two.raw", 0, h5py.h5f.UNLIMITED)]
        file.create_dataset("e", (4,), "i8", external=parts)[:] = range(4)
    assert importers.from_hdf5("in.h5", "e.tsl")["e"][:].tolist() == [0, 1, 2, 3]
    os.truncate("two.raw", 8)
    with pytest.raises(ts.InputError, match=r"external file 'two.raw', which has 8 bytes, not 16"):
        importers.from_hdf5("in.h5", "out.tsl")
    os.remove("two.raw")
    with pytest.raises(ts.InputError, match=r"external file 'two.raw', which does not exist"):
        importers.from_hdf5("in.h5", "out.tsl")
