"""LMDB, and Blosc-compressed values: each test creates small data and compares it bit for bit."""

import os
import sys

import numpy as np
import pytest

import tensilo as ts
from imported import BF16, ODD_BF16, ODD_F32, bits
from tensilo import importers


def write_lmdb(path, pairs, **options):
    lmdb = pytest.importorskip("lmdb")
    name = options.pop("name", None)
    with lmdb.open(os.fspath(path), map_size=64 << 20, max_dbs=1, **options) as env:
        db = env.open_db(name) if name else None
        with env.begin(write=True, db=db) as transaction:
            for key, value in pairs:
                transaction.put(key, value)


def blosc_values(package):
    """Returns bf16 tensors, and each of them bit-shuffled and compressed with Zstandard."""
    blosc = pytest.importorskip(package)
    rng = np.random.default_rng(1)
    tensors = [rng.random((i + 1, 4), np.float32).astype(BF16) for i in range(40)]
    tensors[3][0] = ODD_BF16
    if package == "blosc":
        options = {"typesize": 2, "clevel": 5, "shuffle": blosc.BITSHUFFLE, "cname": "zstd"}
    else:
        options = {"typesize": 2, "clevel": 5, "filter": blosc.Filter.BITSHUFFLE, "codec": blosc.Codec.ZSTD}
    return tensors, [blosc.compress(tensor.tobytes(), **options) for tensor in tensors]


@pytest.mark.parametrize("package", ["blosc", "blosc2"])
def test_lmdb_of_bf16_that_blosc_compressed(tmp_path, package):
    tensors, values = blosc_values(package)
    keys = [b"%08d" % i for i in range(len(values))]
    write_lmdb(tmp_path / "in", [*zip(keys, values, strict=True), (b"__len__", b"40")])
    decode = importers.blosc_decoder((None, 4), "bf16")
    calls = []
    ds = importers.from_lmdb(
        tmp_path / "in",
        tmp_path / "out.tsl",
        decode=decode,
        name="mel",
        skip=["__len__"],
        progress=lambda *call: calls.append(call),
    )
    assert calls == [("importing", 40, 40)]
    assert ds.columns == ["key", "mel"]
    assert (ds.schema["mel"].dtype, ds.schema["mel"].shape) == ("bf16", (None, 4))
    assert [row["key"] for row in ds] == keys
    assert [bits(row["mel"]) for row in ds] == [bits(tensor) for tensor in tensors]
    with pytest.raises(ValueError, match="2 bytes is not a Blosc-compressed tensor") as caught:
        importers.from_lmdb(tmp_path / "in", tmp_path / "none.tsl", decode=decode)
    assert caught.value.__notes__[0] == "key b'__len__'; to leave it out, pass skip=[b'__len__']"
    wrong = importers.blosc_decoder((5, 4), "bf16")
    with pytest.raises(ValueError, match=r"8 bytes do not form a bfloat16 tensor of shape \(5, 4\)"):
        importers.from_lmdb(tmp_path / "in", tmp_path / "none.tsl", decode=wrong)
    assert sorted(os.listdir(tmp_path)) == ["in", "out.tsl"]


def test_values_of_blosc_without_blosc2(monkeypatch):
    tensors, values = blosc_values("blosc")
    monkeypatch.setitem(sys.modules, "blosc2", None)
    decode = importers.blosc_decoder((None, 4), "bfloat16")
    assert [bits(decode(value)) for value in values] == [bits(tensor) for tensor in tensors]
    monkeypatch.setitem(sys.modules, "blosc", None)
    with pytest.raises(ImportError, match="pip install blosc2"):
        importers.blosc_decoder((None, 4), "bf16")


def test_frames_and_pickles_of_blosc():
    blosc2 = pytest.importorskip("blosc2")
    values = np.tile(ODD_F32, 1000)
    schunk = blosc2.SChunk(data=values, cparams={"typesize": 4})
    assert bits(importers.blosc_decoder((None, 4), "f32")(schunk.to_cframe())) == bits(values.reshape(-1, 4))
    # blosc.pack_array produces a pickle
    pickled = blosc2.compress(values.__reduce__()[0].__name__.join(["\x80", "numpy"]).encode("latin-1"), typesize=1)
    with pytest.raises(ValueError, match="pickled"):
        importers.blosc_decoder((None,), "u8")(pickled)
    with pytest.raises(ValueError, match="at most one extent"):
        importers.blosc_decoder((None, None), "u8")


def test_lmdb_values_of_other_kinds(tmp_path):
    write_lmdb(tmp_path / "in.lmdb", [(b"b", b"\2"), (b"a", b"\1")], subdir=False, name=b"sub")
    ds = importers.from_lmdb(tmp_path / "in.lmdb", tmp_path / "raw.tsl", db="sub")
    assert list(ds) == [{"key": b"a", "value": b"\1"}, {"key": b"b", "value": b"\2"}]
    ds = importers.from_lmdb(
        tmp_path / "in.lmdb",
        f"{tmp_path}/dicts/",
        db=b"sub",
        decode=lambda value: {"n": value[0], "x": np.full(2, value[0], BF16)},
        key=None,
    )
    assert ds.columns == ["n", "x"]
    assert bits(ds["x"].take([0, 1]).array()) == bits(np.array([[1, 1], [2, 2]], BF16))


def test_an_lmdb_file_that_was_cut_off(tmp_path):
    """LMDB maps the file: without the check, the system kills the process."""
    write_lmdb(tmp_path / "in", [(b"%04d" % i, bytes(1000)) for i in range(100)])
    size = os.path.getsize(tmp_path / "in/data.mdb")
    os.truncate(tmp_path / "in/data.mdb", size // 2)
    with pytest.raises(ts.InputError, match=f"data.mdb: the file is truncated: .* found {size // 2:,}"):
        importers.from_lmdb(tmp_path / "in", tmp_path / "out.tsl")


@pytest.mark.parametrize("count", [200, 20_000])
def test_an_lmdb_file_whose_last_pages_were_never_written(tmp_path, count):
    """Pages of keys that one transaction puts and deletes. The list of free pages is short, or has its own pages."""
    lmdb = pytest.importorskip("lmdb")
    with lmdb.open(os.fspath(tmp_path / "in"), map_size=256 << 20) as env:
        for some in (20, count):
            with env.begin(write=True) as transaction:
                for i in range(some):
                    transaction.put(b"%08d" % i, bytes(3000))
                for i in range(some):
                    transaction.delete(b"%08d" % i)
            with env.begin(write=True) as transaction:
                transaction.put(b"a", b"1")
        expected = env.stat()["psize"] * (env.info()["last_pgno"] + 1)
    path = tmp_path / "in/data.mdb"
    if os.path.getsize(path) >= expected:
        pytest.skip("this version of LMDB writes these pages")
    ds = importers.from_lmdb(tmp_path / "in", tmp_path / "out.tsl")
    assert list(ds) == [{"key": b"a", "value": b"1"}]
    os.truncate(path, 3 * 4096)
    with pytest.raises(ts.InputError, match="the file is truncated"):
        importers.from_lmdb(tmp_path / "in", tmp_path / "none.tsl")
