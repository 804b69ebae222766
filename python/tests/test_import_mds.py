"""MDS shards: each test creates small data and compares it bit for bit."""

import json
import os
import struct

import numpy as np
import pytest

import tensilo as ts
from imported import ODD_F32, bits
from tensilo import importers


def write_mds(folder, columns, shards, zipped=None):
    """Writes MDS shards of encoded values; ``columns`` has the encoding and fixed size of each."""
    names, infos = sorted(columns), []
    os.makedirs(folder)
    for number, rows in enumerate(shards):
        samples = []
        for row in rows:
            sizes = [len(row[name]) for name in names if not columns[name][1]]
            values = b"".join(row[name] for name in names)
            samples.append(struct.pack(f"<{len(sizes)}I", *sizes) + values)
        config = b"{}"
        start = 4 + 4 * (len(rows) + 1) + len(config)
        offsets = np.cumsum([start, *map(len, samples)]).astype("<u4").tobytes()
        data = struct.pack("<I", len(rows)) + offsets + config + b"".join(samples)
        name = f"shard.{number:05}.mds"
        info = {
            "column_names": names,
            "column_encodings": [columns[name][0] for name in names],
            "column_sizes": [columns[name][1] for name in names],
            "compression": None,
            "format": "mds",
            "raw_data": {"basename": name, "bytes": len(data), "hashes": {}},
            "samples": len(rows),
            "version": 2,
            "zip_data": None,
        }
        if zipped:
            kind, compress = zipped
            data, name = compress(data), f"{name}.{kind}"
            info |= {
                "compression": f"{kind}:3",
                "zip_data": {"basename": name, "bytes": len(data), "hashes": {}},
            }
        (folder / name).write_bytes(data)
        infos.append(info)
    (folder / "index.json").write_text(json.dumps({"version": 2, "shards": infos}))


MDS_COLUMNS = {
    "f": ("float32", 4),
    "i": ("int", 8),
    "im": ("pil", None),
    "js": ("json", None),
    "known": ("ndarray:float32:4", 16),
    "list": ("list[jpeg]", None),
    "open": ("ndarray", None),
    "png": ("png", None),
    "s": ("str", None),
    "si": ("str_int", None),
}


def mds_row(i):
    shape = bytes([34, 2 << 2, i + 1, 2])  # float32, rank 2 with extents of one byte
    return {
        "f": ODD_F32[:1].tobytes(),
        "i": struct.pack("<q", -i),
        "im": struct.pack("<3I", 2, 1, 3) + b"RGB" + bytes(range(6)),
        "js": b'{"a": 1}',
        "known": ODD_F32.tobytes(),
        "list": struct.pack("<4I", 0, 2, 1, 2) + b"abb",
        "open": shape + np.full((i + 1, 2), i, "f4").tobytes(),
        "png": b"\x89PNG",
        "s": f"ä{i}".encode(),
        "si": b"%d" % i,
    }


@pytest.mark.parametrize("kind", [None, "gz", "bz2", "zstd", "br"])
def test_mds_shards(tmp_path, kind):
    zipped = None
    if kind == "zstd":
        zipped = kind, next((m.compress for m in map(optional, ["zstandard", "zstd"]) if m), None)
    elif kind:
        zipped = kind, pytest.importorskip({"gz": "gzip", "br": "brotli"}.get(kind, kind)).compress
    if zipped and zipped[1] is None:
        pytest.skip("no package for zstd")
    write_mds(tmp_path / "in", MDS_COLUMNS, [[mds_row(i) for i in range(5)], [mds_row(5)]], zipped)
    ds = importers.from_mds(tmp_path / "in", f"{tmp_path}/out/", shard_bytes="1MiB")
    assert len(ds) == 6
    for i, row in enumerate(ds):
        assert (row["i"], row["s"], row["si"], row["js"], row["png"]) == (
            -i,
            f"ä{i}",
            i,
            '{"a": 1}',
            b"\x89PNG",
        )
        assert row["list"] == [b"a", b"bb"]
        assert bits(row["known"]) == bits(ODD_F32)
        assert bits(row["open"]) == bits(np.full((i + 1, 2), i, "f4"))
        assert bits(row["im"]) == bits(np.arange(6, dtype="u1").reshape(1, 2, 3))
    assert bits(ds["f"].take([0]).array()) == bits(ODD_F32[:1])
    assert importers.from_mds(tmp_path / "in", tmp_path / "one.tsl", columns=["i"]).columns == ["i"]
    assert importers.from_mds(tmp_path / "in", tmp_path / "si.tsl", columns="si").columns == ["si"]


def optional(module):
    try:
        return __import__(module)
    except ImportError:
        return None


def test_mds_values_that_are_pickled(tmp_path):
    import pickle

    rows = [{"p": pickle.dumps({"nested": i}), "q": struct.pack("<q", i)} for i in range(3)]
    write_mds(tmp_path / "in", {"p": ("pkl", None), "q": ("int", 8)}, [rows])
    with pytest.raises(ts.InputError, match=r"pickled; .*allow_pickle=True") as caught:
        importers.from_mds(tmp_path / "in", tmp_path / "out.tsl")
    assert caught.value.column == "p"
    assert list(importers.from_mds(tmp_path / "in", tmp_path / "q.tsl", columns=["q"])) == [{"q": i} for i in range(3)]
    ds = importers.from_mds(tmp_path / "in", tmp_path / "dicts.tsl", allow_pickle=True)
    assert list(ds) == [{"p.nested": i, "q": i} for i in range(3)]
    numbers = [{"p": pickle.dumps(i)} for i in range(3)]
    write_mds(tmp_path / "numbers", {"p": ("pkl", None)}, [numbers])
    ds = importers.from_mds(tmp_path / "numbers", tmp_path / "out.tsl", allow_pickle=True)
    assert list(ds) == [{"p": i} for i in range(3)]


def test_mds_shards_that_are_damaged(tmp_path):
    folder = tmp_path / "in"
    write_mds(folder, {"s": ("str", None)}, [[{"s": b"abc"}] * 3])
    shard = folder / "shard.00000.mds"
    good = shard.read_bytes()
    for damaged, message in [
        (good[:-1], "sample 2 is outside the shard"),
        (good[:10], "the index lists 3 samples"),
        (b"\4" + good[1:], "the index lists 3 samples"),
        (good[:-7] + b"\4" + good[-6:], "sample 2 has 7 bytes, but its values end at 8"),
    ]:
        shard.write_bytes(damaged)
        with pytest.raises(ts.InputError, match=message) as caught:
            importers.from_mds(folder, tmp_path / "out.tsl")
        assert caught.value.path == os.fspath(shard)
    shard.unlink()
    with pytest.raises(FileNotFoundError):
        importers.from_mds(folder, tmp_path / "out.tsl")
    (folder / "index.json").write_text('{"version": 1, "shards": [{"format": "mds"}]}')
    with pytest.raises(ts.InputError, match="expected format 'mds' version 2"):
        importers.from_mds(folder, tmp_path / "out.tsl")
    assert os.listdir(tmp_path) == ["in"]


@pytest.mark.parametrize(
    ("encoding", "value", "error"),
    [
        ("ndarray", b"\7", "KeyError"),
        ("ndarray", b"", "IndexError"),
        ("ndarray:float32:4", b"\0" * 12, "ValueError"),
        ("int", b"abc", "error"),
        ("list[jpeg]", b"abc", "error"),
        ("str", b"\xff", "UnicodeDecodeError"),
        ("str_int", b"x", "ValueError"),
        ("pkl", b"x", "UnpicklingError"),
    ],
)
def test_mds_values_that_are_malformed(tmp_path, encoding, value, error):
    write_mds(tmp_path / "in", {"v": (encoding, None)}, [[{"v": value}]])
    with pytest.raises(ts.InputError, match=f"sample 0 is malformed: {error}") as caught:
        importers.from_mds(tmp_path / "in", tmp_path / "out.tsl", allow_pickle=True)
    assert caught.value.column == "v" and caught.value.path.endswith("shard.00000.mds")


@pytest.mark.parametrize("index", ["{", "[]", '{"version": 2, "shards": [{"format": "mds", "samples": 1}]}'])
def test_mds_indices_that_are_malformed(tmp_path, index):
    (tmp_path / "index.json").write_text(index)
    with pytest.raises(ts.InputError, match="the index is malformed"):
        importers.from_mds(tmp_path, tmp_path / "out.tsl")


def test_mds_of_the_package_streaming(tmp_path):
    streaming = pytest.importorskip("streaming")
    columns = {
        "x": "ndarray",
        "y": "ndarray:float16:2,2",
        "n": "int64",
        "t": "str",
        "b": "bytes",
        "f": "str_float",
    }
    rows = [
        {
            "x": np.full((i + 1, 300), i, "u1"),
            "y": np.full((2, 2), np.nan, "f2"),
            "n": np.int64(-i),
            "t": "ä" * i,
            "b": b"\0" * i,
            "f": i / 3,
        }
        for i in range(20)
    ]
    with streaming.MDSWriter(
        out=os.fspath(tmp_path / "in"), columns=columns, compression="zstd", size_limit=4096
    ) as out:
        for row in rows:
            out.write(row)
    ds = importers.from_mds(tmp_path / "in", tmp_path / "out.tsl")
    for row, found in zip(rows, ds, strict=True):
        assert (found["n"], found["t"], found["b"], found["f"]) == (row["n"], row["t"], row["b"], row["f"])
        assert bits(found["x"]) == bits(row["x"])
        assert bits(found["y"]) == bits(row["y"])
