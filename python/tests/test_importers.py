"""Importers: each on small data that its test makes, compared bit for bit."""

import collections
import json
import os
import struct
import sys

import numpy as np
import pytest

import tensilo as ts
from tensilo import importers
from tensilo.importers import _samples

ml_dtypes = pytest.importorskip("ml_dtypes")
BF16 = np.dtype(ml_dtypes.bfloat16)
# quiet NaN with a payload, infinity, negative zero, a subnormal
ODD_F32 = np.array([0x7FC12345, 0x7F800000, 0x80000000, 0x00000001], np.uint32).view(np.float32)
ODD_BF16 = np.array([0x7FC1, 0xFF80, 0x8000, 0x0001], np.uint16).view(BF16)


def bits(value):
    """Returns type, shape and bytes of an array."""
    if isinstance(value, ts.Array):
        value = value.numpy() if value.dtype != "bf16" else value.numpy(view="uint16").view(BF16)
    value = np.asarray(value)
    return str(value.dtype), value.shape, value.tobytes()


def files(folder):
    """Returns all files below a folder."""
    return [name for _, _, names in os.walk(folder) for name in names]


def failing(samples):
    yield from samples
    raise RuntimeError("the source is broken")


# ---------------------------------------------------------------- iterables


def test_arrays_texts_and_numbers_come_back(tmp_path):
    torch = pytest.importorskip("torch")
    bf16 = torch.from_numpy(ODD_BF16.view(np.int16)).view(torch.bfloat16)
    rows = [
        {
            "mel": np.tile(ODD_F32, (i + 1, 1)),
            "bf16": bf16,
            "numpy_bf16": ODD_BF16[::-1],
            "big_endian": np.arange(3, dtype=">i2") + i,
            "grad": torch.full((2,), float(i), requires_grad=True),
            "scalar": np.float16(i),
            "count": i,
            "large": 2**64 - 1 - i,
            "weight": i / 3 if i else 0,
            "flag": i % 2 == 0,
            "text": f"sample {i} ä",
            "name": np.str_("n"),
            "raw": bytearray(b"\0\xff" * i),
            "tokens": list(range(i)),
            "box": (1, 2, 3, 4),
            "words": ["a"] * i,
            "maybe": None if i == 1 else i,
        }
        for i in range(3)
    ]
    ds = importers.from_iterable(iter(rows), tmp_path / "out.tsl")
    assert ds.columns == list(rows[0])
    schema = ds.schema
    assert (schema["mel"].shape, schema["tokens"].shape, schema["box"].shape) == ((None, 4), (None,), (4,))
    dtypes = {name: column.dtype for name, column in schema.items()}
    assert [dtypes[name] for name in ("bf16", "numpy_bf16", "count", "large", "weight", "flag", "scalar")] == [
        "bf16",
        "bf16",
        "i64",
        "u64",
        "f64",
        "bool",
        "f16",
    ]
    assert [name for name, column in schema.items() if column.nullable] == ["maybe"]
    for row, found in zip(rows, ds, strict=True):
        assert bits(found["mel"]) == bits(row["mel"])
        assert bits(found["bf16"]) == bits(ODD_BF16)
        assert bits(found["numpy_bf16"]) == bits(row["numpy_bf16"])
        assert bits(found["big_endian"]) == bits(row["big_endian"].astype("=i2"))
        assert bits(found["grad"]) == bits(row["grad"].detach().numpy())
        assert found["tokens"].tolist() == row["tokens"]
        assert found["box"].tolist() == [1, 2, 3, 4]
        for name in ("scalar", "count", "large", "weight", "flag", "text", "name", "raw", "words", "maybe"):
            assert found[name] == row[name], name


def test_lists_are_tensors_only_if_they_are_rectangular(tmp_path):
    rows = [
        {
            "square": [[1, 2], [3, 4]],
            "jagged": [[1.0], [2, 3]],
            "holes": [1, None],
            "arrays": [np.zeros((1, 2))],
        },
        {"square": [[5, 6]], "jagged": [], "holes": [], "arrays": [np.ones((2, 2)), np.ones((0, 2))]},
        {"square": [], "jagged": [[]], "holes": [None], "arrays": []},
    ]
    ds = importers.from_iterable(rows, tmp_path / "out.tsl")
    found = {name: (column.dtype, column.shape, column.levels) for name, column in ds.schema.items()}
    assert found == {
        "square": ("i64", (None, 2), []),
        "jagged": ("f64", (None,), [False]),
        "holes": ("i64", (), [True]),
        "arrays": ("f64", (None, 2), [False]),
    }
    assert [row["holes"] for row in ds] == [[1, None], [], [None]]
    assert [[list(part.tolist()) for part in row["jagged"]] for row in ds] == [[[1.0], [2.0, 3.0]], [], [[]]]
    assert [row["square"].tolist() for row in ds] == [[[1, 2], [3, 4]], [[5, 6]], []]


def test_a_schema_rounds_and_others_are_found(tmp_path):
    rows = [{"x": np.linspace(0, 1, 5, dtype="f4"), "y": i} for i in range(4)]
    schema = {"x": ts.tensor("bf16", (None,), cast_from="f32")}
    ds = importers.from_iterable(rows, tmp_path / "out.tsl", schema)
    assert (ds.schema["x"].dtype, ds.schema["y"].dtype) == ("bf16", "i64")
    assert bits(ds[2]["x"]) == bits(rows[2]["x"].astype(BF16))
    again = importers.from_iterable(rows, tmp_path / "again.tsl", ds.schema)
    assert again.schema["x"] == ds.schema["x"]


def test_samples_of_a_dataset(tmp_path):
    rows = [{"x": np.tile(ODD_BF16, i), "y": i} for i in range(4)]
    ds = importers.from_iterable(rows, tmp_path / "out.tsl")
    again = importers.from_iterable(ds, tmp_path / "again.tsl", columns=["x"])
    assert [bits(row["x"]) for row in again] == [bits(row["x"]) for row in rows]


def test_samples_come_back_or_are_refused(tmp_path):
    """Of any samples, either all come back as they were, or the types are refused: none is changed."""
    hypothesis = pytest.importorskip("hypothesis")
    st, arrays = hypothesis.strategies, pytest.importorskip("hypothesis.extra.numpy").arrays
    scalars = [
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.booleans(),
        st.text(max_size=3),
        st.binary(max_size=3),
    ]
    shapes = st.tuples(st.integers(0, 2), st.integers(0, 2))
    kinds = [
        *scalars,
        st.one_of(scalars),
        *(shapes.flatmap(lambda s, t=t: arrays(t, s)) for t in ("f2", ">i4", "?")),
    ]

    def nested(kind):
        return st.one_of(kind, st.lists(kind, max_size=3), st.lists(st.lists(kind, max_size=3), max_size=3))

    columns = st.sampled_from([*map(nested, kinds), *(nested(st.none() | kind) for kind in kinds)])

    @hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
    @hypothesis.given(columns.flatmap(lambda values: st.lists(values, min_size=1, max_size=4)))
    def check(values):
        try:
            ds = importers.from_iterable([{"x": value} for value in values], tmp_path / "x.tsl", overwrite=True)
        except ts.InputError as error:
            assert "in the first" in str(error) or "surrogates" in str(error)
            return
        for value, row in zip(values, ds, strict=True):
            assert is_same(value, row["x"])

    check()


def is_same(value, found):
    if isinstance(value, np.ndarray):
        return bits(value.astype(value.dtype.newbyteorder("="))) == bits(found)
    if isinstance(value, list):
        found = found.tolist() if isinstance(found, ts.Array) else found
        return len(value) == len(found) and all(map(is_same, value, found))
    if isinstance(value, float):
        return struct.pack("d", value) == struct.pack("d", found) or (value != value and found != found)
    return value == found


def test_columns_that_are_stored(tmp_path):
    rows = [{"a": 1, "b": 2}, {"b": 3, "c": 4}]
    ds = importers.from_iterable(rows, tmp_path / "some.tsl", columns=["b"])
    assert list(ds) == [{"b": 2}, {"b": 3}]
    ds = importers.from_iterable(rows, tmp_path / "all.tsl")
    assert list(ds) == [{"a": 1, "b": 2, "c": None}, {"a": None, "b": 3, "c": 4}]
    with pytest.raises(ts.InputError, match="sample 1 has 'c', which the first samples do not"):
        importers.from_iterable(rows, tmp_path / "more.tsl", examined=1, schema={"a": ts.tensor("i64", nullable=True)})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([{}], object), "array of objects"),
        (np.ma.masked_array(np.zeros(2), [0, 1]), "mask"),
        (np.zeros(2, "M8[s]"), "datetime64"),
        ({"nested": 1}, "dict cannot be stored"),
        (object(), "object cannot be stored"),
    ],
)
def test_values_that_cannot_be_stored(tmp_path, value, message):
    with pytest.raises(TypeError, match=message) as caught:
        importers.from_iterable([{"x": 1}, {"x": value}], tmp_path / "out.tsl")
    assert caught.value.__notes__ == ["sample 1, column 'x'"]
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], "different types: int, str"),
        ([True, 1], "different types: bool, int"),
        ([2**53 + 1, 0.5], "integers that f64 does not hold exactly"),
        ([np.zeros(2, "f4"), np.zeros(2, "f8")], "different types: float32, float64"),
        ([np.zeros((2, 2)), np.zeros(2)], "different ranks"),
        ([None, None], "no value"),
        ([[], []], "no value"),
        ([np.zeros(1, "c8")], "complex64"),
    ],
)
def test_samples_without_a_common_type(tmp_path, values, message):
    with pytest.raises(ts.InputError, match=message) as caught:
        importers.from_iterable([{"x": value} for value in values], tmp_path / "out.tsl")
    assert caught.value.column == "x"
    assert files(tmp_path) == []


def test_a_failing_sample_leaves_no_output(tmp_path):
    good = [{"x": np.zeros(3, "f4")}] * 3000
    with pytest.raises(RuntimeError, match="broken") as caught:
        importers.from_iterable(failing(good), tmp_path / "out.tsl")
    assert caught.value.__notes__ == ["sample 3000"]
    with pytest.raises(ts.InputError, match=r"sample 3000: column \"x\": a sample of shape \[4\]"):
        importers.from_iterable([*good, {"x": np.zeros(4, "f4")}], tmp_path / "out.tsl")
    with pytest.raises(ts.InputError, match=r"sample 3000: .*null"):
        importers.from_iterable([*good, {}], tmp_path / "out.tsl")
    assert os.listdir(tmp_path) == []
    with pytest.raises(RuntimeError, match="broken"):
        importers.from_iterable(failing(good), f"{tmp_path}/folder/", shard_bytes=4096)
    assert files(tmp_path) == []


def test_no_samples_and_outputs_that_are_there(tmp_path):
    with pytest.raises(ts.InputError, match="no samples"):
        importers.from_iterable([], tmp_path / "out.tsl")
    rows = [{"x": i} for i in range(10)]
    importers.from_iterable(rows, tmp_path / "out.tsl", metadata={"from": "test"}, profile="small")
    with pytest.raises(FileExistsError):
        importers.from_iterable(iter(rows), tmp_path / "out.tsl")
    ds = importers.from_iterable(rows[:3], tmp_path / "out.tsl", metadata={"from": "b"}, overwrite=True)
    assert (len(ds), ds.metadata["from"]) == (3, "b")
    ds = importers.from_iterable(rows, f"{tmp_path}/folder/")
    assert (len(ds), ds.version) == (10, 1)
    with pytest.raises(FileExistsError):
        importers.from_iterable(rows, f"{tmp_path}/folder/", overwrite=True)
    assert len(ts.open(tmp_path / "folder")) == 10


def test_batches_are_bounded(tmp_path, monkeypatch):
    """Of a generator, not many more samples are taken than were written."""
    monkeypatch.setattr(_samples, "BATCH_BYTES", 40_000)
    monkeypatch.setattr(_samples, "_EXAMINED_BYTES", 100_000)
    taken, most, told = 0, 0, []

    def samples():
        nonlocal taken
        for i in range(500):
            taken += 1
            yield {"x": np.full(1000, i, "f4")}

    def progress(phase, done, total):
        nonlocal most
        most = max(most, taken - done)
        told.append((phase, done, total))

    ds = importers.from_iterable(samples(), tmp_path / "out.tsl", progress=progress)
    assert most <= 25
    assert told[0] == ("importing", 10, None)
    assert told[-1] == ("importing", 500, None)
    assert np.array_equal(ds["x"].take(range(500)).numpy()[:, 0], np.arange(500))


def test_progress_that_raises_ends_the_work(tmp_path):
    def progress(phase, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importers.from_iterable([{"x": 1}], tmp_path / "out.tsl", progress=progress)
    assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------- PyTorch


class MapStyle:
    """A map-style dataset of tuples; at module level, so that workers can have it."""

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
    with pytest.raises(ValueError, match="pass names= with 2 names"):
        importers.from_torch_dataset(tensors, tmp_path / "none.tsl")
    with pytest.raises(ValueError, match="2 names, not 1"):
        importers.from_torch_dataset(tensors, tmp_path / "none.tsl", names="x")
    ds = importers.from_torch_dataset(tensors, tmp_path / "tensors.tsl", names=["x", "y"])
    assert ds["x"].take([2, 0]).tolist() == [[4.0, 5.0], [0.0, 1.0]]
    pair = collections.namedtuple("pair", "a b")
    ds = importers.from_torch_dataset([pair(1, "x"), pair(2, "y")], tmp_path / "named.tsl")
    assert list(ds) == [{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]
    ds = importers.from_torch_dataset([1.5, 2.5], tmp_path / "one.tsl", names="x")
    assert list(ds) == [{"x": 1.5}, {"x": 2.5}]


# ---------------------------------------------------------------- HDF5


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


def test_hdf5_inputs_that_do_not_fit(tmp_path):
    h5py = pytest.importorskip("h5py")
    path, out = tmp_path / "in.h5", tmp_path / "out.tsl"
    with h5py.File(path, "w") as file:
        file["x"], file["y"], file["scalar"] = np.arange(3), np.arange(4), 5
        file["latin"] = np.array([b"\xe4"] * 3, "S1")
        file["z/complex"] = np.zeros(3, "c8")
    with pytest.raises(ts.InputError, match="x 3, y 4"):
        importers.from_hdf5(path, out, columns=["x", "y"])
    with pytest.raises(ts.InputError, match="without dimensions"):
        importers.from_hdf5(path, out)
    with pytest.raises(ts.InputError, match="complex64 cannot be stored"):
        importers.from_hdf5(path, out, columns=["z/complex"])
    with pytest.raises(KeyError, match="no dataset 'z'; there are"):
        importers.from_hdf5(path, out, columns=["z"])
    with pytest.raises(KeyError, match="views: no column 'y'; there are x"):
        importers.from_hdf5(path, out, columns=["x"], views={"y": "bf16"})
    with pytest.raises(ts.InputError, match="its bits are no bfloat16"):
        importers.from_hdf5(path, out, columns=["x"], views={"x": "bf16"})
    with pytest.raises(ts.InputError, match=r"samples 0\.\.3: .*utf-8.*tensilo.bytes"):
        importers.from_hdf5(path, out, columns=["x", "latin"])
    assert os.listdir(tmp_path) == ["in.h5"]
    ds = importers.from_hdf5(path, out, columns=["latin"], schema={"latin": ts.bytes()})
    assert ds[0] == {"latin": b"\xe4"}


def test_hdf5_filters_of_the_plugin(tmp_path):
    h5py = pytest.importorskip("h5py")
    hdf5plugin = pytest.importorskip("hdf5plugin")
    values = np.random.default_rng(1).random((50, 4), np.float32)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file.create_dataset("x", data=values, **hdf5plugin.Bitshuffle(cname="zstd"))
    ds = importers.from_hdf5(tmp_path / "in.h5", f"{tmp_path}/out/")
    assert bits(ds["x"].take(range(50)).array()) == bits(values)


# ---------------------------------------------------------------- LMDB


def write_lmdb(path, pairs, **options):
    lmdb = pytest.importorskip("lmdb")
    name = options.pop("name", None)
    with lmdb.open(os.fspath(path), map_size=64 << 20, max_dbs=1, **options) as env:
        db = env.open_db(name) if name else None
        with env.begin(write=True, db=db) as transaction:
            for key, value in pairs:
                transaction.put(key, value)


def blosc_values(package):
    """Returns bf16 tensors, and each as bit shuffled and compressed by Zstandard."""
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
    told = []
    ds = importers.from_lmdb(
        tmp_path / "in",
        tmp_path / "out.tsl",
        decode=decode,
        name="mel",
        skip=["__len__"],
        progress=lambda *told_now: told.append(told_now),
    )
    assert told == [("importing", 40, 40)]
    assert ds.columns == ["key", "mel"]
    assert (ds.schema["mel"].dtype, ds.schema["mel"].shape) == ("bf16", (None, 4))
    assert [row["key"] for row in ds] == keys
    assert [bits(row["mel"]) for row in ds] == [bits(tensor) for tensor in tensors]
    with pytest.raises(ValueError, match="2 bytes is no tensor that Blosc has compressed") as caught:
        importers.from_lmdb(tmp_path / "in", tmp_path / "none.tsl", decode=decode)
    assert caught.value.__notes__[0] == "key b'__len__'; skip=[b'__len__'] leaves it out"
    wrong = importers.blosc_decoder((5, 4), "bf16")
    with pytest.raises(ValueError, match=r"8 bytes are no bfloat16 tensor of shape \(5, 4\)"):
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
    # what blosc.pack_array makes: a pickle
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


# ---------------------------------------------------------------- datasets


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
    told = []
    ds = importers.from_hf(
        dataset,
        tmp_path / "out.tsl",
        metadata={"made": "by a test"},
        profile="small",
        progress=lambda *told_now: told.append(told_now),
    )
    assert told[0] == ("reading", 5, 5)
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
    # chosen and reordered samples, and columns
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


# ---------------------------------------------------------------- MDS


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
    with pytest.raises(TypeError, match="dict cannot be stored"):
        importers.from_mds(tmp_path / "in", tmp_path / "out.tsl", allow_pickle=True)
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
        (good[:-1], "sample 2 is not in the shard"),
        (good[:10], "does not have the 3 samples"),
        (b"\4" + good[1:], "does not have the 3 samples"),
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
    with pytest.raises(ts.InputError, match="not version 2"):
        importers.from_mds(folder, tmp_path / "out.tsl")
    assert os.listdir(tmp_path) == ["in"]


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


# ---------------------------------------------------------------- packages that are not installed


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
