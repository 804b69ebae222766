"""Datasets: opening, samples, batches, columns."""

import itertools
import pathlib
import pickle
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT, SCHEMA, assert_is_sample, sample


def test_a_dataset_has_its_properties(mixed, mixed_path):
    assert len(mixed) == COUNT
    assert mixed.columns == list(SCHEMA)
    assert mixed.version == 1 and mixed.versions() == [1]
    assert len(mixed.id) == 32
    assert mixed.metadata == {"made": "here"} == mixed.schema.metadata
    assert mixed.uri == str(mixed_path)
    assert "emb" in mixed and "nothing" not in mixed
    assert dict(mixed.schema.items()).keys() == SCHEMA.keys()
    assert mixed.schema["emb"].cast_from == "f32" and mixed.schema["mel"].shape == (None, 3)
    assert mixed.schema["words"].levels == [True]


def test_any_sample_is_read_by_its_number(mixed):
    for i in (0, 1, 250, COUNT - 1):
        assert_is_sample(mixed[i], i)
    assert_is_sample(mixed[-1], COUNT - 1)
    assert_is_sample(mixed[np.int64(3)], 3)


def test_iteration_gives_each_sample_once(mixed):
    assert [row["label"] for row in mixed] == list(range(COUNT))


@pytest.mark.parametrize(
    "indices",
    [
        [5, 3, 5, -1],
        range(10, 400, 7),
        np.array([1, 2, 3], dtype=np.int32),
        np.array([1, 2, 3], dtype=np.uint64),
        np.arange(0, 100)[::3],
        (i for i in [4, 1]),
        [],
        slice(None, None, -100),
    ],
    ids=str,
)
def test_samples_come_in_the_requested_order(mixed, indices):
    if isinstance(indices, slice):
        expected = list(range(COUNT))[indices]
    else:
        indices = list(indices) if not isinstance(indices, (range, np.ndarray)) else indices
        expected = [int(i) % COUNT for i in indices]
    batch = mixed.take(indices)
    assert len(batch) == len(expected)
    assert batch["label"].tolist() == expected == batch.indices.tolist()
    for row, i in zip(batch.rows(), expected, strict=True):
        assert_is_sample(row, i)


def test_slices_are_those_of_python(mixed):
    for part in (slice(3, 10), slice(-5, None), slice(490, 1000), slice(10, 3), slice(None, 20, 3)):
        assert mixed[part]["label"].tolist() == list(range(COUNT))[part]


def test_columns_can_be_chosen(mixed):
    batch = mixed.take([1, 2], columns=["label", "text"])
    assert batch.keys() == ["label", "text"] and list(batch) == ["label", "text"]
    assert "emb" not in batch and len(mixed.take([0], columns="label").keys()) == 1
    assert dict(batch).keys() == {"label", "text"}


def test_a_column_reads_its_samples(mixed):
    emb = mixed["emb"]
    assert (emb.name, emb.dtype, emb.shape, emb.nullable, len(emb)) == ("emb", "bf16", (8,), False, COUNT)
    assert emb.type == mixed.schema["emb"]
    taken = emb.take([7, 7])
    np.testing.assert_array_equal(taken.numpy(dtype="float32"), [sample(7)["emb"]] * 2)
    assert mixed["text"][7] is None and mixed["text"][8] == sample(8)["text"]
    assert mixed["label"][5:8].tolist() == [5, 6, 7]


def test_types_can_be_changed_on_the_way(mixed):
    assert mixed["emb"].take([1], dtype="f32").dtype == "f32"
    batch = mixed.take([1], columns=["emb", "label"], casts={"emb": np.float32})
    assert batch["emb"].numpy().dtype == np.float32
    with pytest.raises(ValueError, match="label"):
        mixed.take([1], casts={"label": "i8"})


def test_values_go_to_memory_of_the_caller(mixed):
    out = np.zeros((3, 8), dtype=np.float32)
    assert mixed["emb"].take([1, 2, 3], dtype="f32", out=out) is out
    np.testing.assert_array_equal(out, [sample(i)["emb"] for i in (1, 2, 3)])
    bits = np.zeros((1, 8), dtype=np.uint16)
    mixed["emb"].take([9], out=bits)
    np.testing.assert_array_equal(bits, mixed["emb"].take([9]).numpy(view="uint16"))
    raw = bytearray(16)
    mixed["emb"].take([9], out=raw)
    assert raw == bits.tobytes()


def test_memory_that_does_not_fit_is_refused(mixed):
    emb = mixed["emb"]
    with pytest.raises(ValueError, match="shape"):
        emb.take([1], out=np.zeros((2, 8), dtype=np.uint16))
    with pytest.raises(TypeError, match="f64"):
        emb.take([1], out=np.zeros((1, 8)))
    with pytest.raises((TypeError, ValueError)):
        emb.take([1], out=np.zeros((1, 16), dtype=np.uint16)[:, ::2])
    with pytest.raises((TypeError, ValueError)):
        emb.take([1], out=b"0123456789abcdef")
    with pytest.raises(TypeError, match="writable array"):
        emb.take([1], out=object())
    with pytest.raises(TypeError, match="one shape"):
        mixed["mel"].take([1], out=np.zeros((1, 3), dtype=np.float32))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda ds: ds[COUNT], IndexError, "500"),
        (lambda ds: ds[-COUNT - 1], IndexError, "-501"),
        (lambda ds: ds.take([1, COUNT]), IndexError, "500"),
        (lambda ds: ds["nothing"], KeyError, "emb"),
        (lambda ds: ds.take([1], columns=["nothing"]), KeyError, "emb"),
        (lambda ds: ds.take([1], columns=3), TypeError, "names"),
        (lambda ds: ds.take([1.5]), TypeError, "integers"),
        (lambda ds: ds.take("1"), TypeError, "integers"),
        (lambda ds: ds.take(b"\x00\x02"), TypeError, "integers"),
        (lambda ds: ds.take([True]), IndexError, "mask"),
        (lambda ds: ds.take(np.ones((2, 2), dtype=int)), TypeError, "dimensions"),
        (lambda ds: ds.take([2**70]), (TypeError, IndexError), None),
        (lambda ds: ds[1.5], TypeError, "float"),
        (lambda ds: ds[None], TypeError, "None"),
        (lambda ds: ds.take(None), TypeError, "integers"),
        (lambda ds: ds["emb"].take([0], dtype="f31"), ValueError, "bf16"),
        (lambda ds: ds["emb"].take([0], dtype=object()), TypeError, "dtype"),
        (lambda ds: ds["mel"].view(1), ValueError, "mapped"),
        (lambda ds: ds[:3]["mel"].numpy(), TypeError, "ragged"),
        (lambda ds: ds[:3]["emb"].ragged(), TypeError, "fixed"),
        (lambda ds: ds[:3]["label"].padded(), ValueError, "pad"),
        (lambda ds: ds[:3][3], IndexError, "3"),
        (lambda ds: ds[:3]["x"], KeyError, "emb"),
        (lambda ds: ts.open(ds.uri, version=9), ValueError, "9"),
        (lambda ds: ts.open(ds.uri, io="telepathy"), ValueError, "mmap"),
        (lambda ds: ts.open([]), ValueError, "empty"),
        (lambda ds: ts.open(3), TypeError, "path"),
        (lambda ds: ts.open("not/there.tsl"), FileNotFoundError, "there"),
        (lambda ds: ts.open("not/there-*.tsl"), FileNotFoundError, "match"),
    ],
)
def test_a_bad_argument_is_an_exception_of_its_type(mixed, call, error, words):
    with pytest.raises(error, match=words):
        call(mixed)


def test_files_are_opened_as_they_are_named(mixed_path, tmp_path):
    files = sorted(mixed_path.glob("**/*.tsl"))
    assert len(files) > 3
    whole = ts.open(files)
    assert len(whole) == COUNT and whole.version == 0
    assert len(ts.open(str(mixed_path / "**/*.tsl"))) == COUNT
    assert len(ts.open(files[0])) < COUNT
    for io in ("mmap", "pread"):
        dataset = ts.open(mixed_path, io=io, max_open_files=1)
        assert dataset.io[0] == io
        assert dataset[::-1]["label"].tolist() == list(range(COUNT))[::-1]
    (tmp_path / "x.tsl").write_bytes(b"no tensilo file" * 9)
    with pytest.raises(ts.CorruptionError) as caught:
        ts.open(tmp_path / "x.tsl")
    assert caught.value.rule and caught.value.offset == 0 and caught.value.path.endswith("x.tsl")
    assert "convert" in caught.value.__notes__[0]
    (tmp_path / "x.tsl").write_bytes(pathlib.Path(files[0]).read_bytes()[:-1])
    with pytest.raises(ts.CorruptionError) as caught:
        ts.open(tmp_path / "x.tsl")
    assert "verify" in caught.value.__notes__[0]
    with pytest.raises(ValueError, match="below 0"):
        ts.open(mixed_path, version=-1)


def test_a_dataset_shows_itself(mixed):
    assert "500 samples" in repr(mixed) and "list<utf8>" in repr(mixed)
    page = mixed._repr_html_()
    assert page.count("<tr>") == 1 + len(SCHEMA) and "500 samples" in page
    assert "(None, 3)" in repr(mixed.schema) and "<table>" in mixed.schema._repr_html_()
    for thing in (mixed["emb"], mixed[:3], mixed[:3]["mel"], mixed[0]["emb"], mixed.schema["emb"]):
        assert type(thing).__name__ in repr(thing)
    assert repr(mixed[:3]).splitlines()[2].split() == ["emb", "bf16", "(3,", "8)"]
    assert "list<utf8>" in repr(mixed[:3]) and "(3, None, 3)" in repr(mixed[:3])


def test_columns_are_arrays_and_batches_are_not(mixed):
    np.testing.assert_array_equal(np.asarray(mixed["label"]), range(COUNT))
    assert np.asarray(mixed["emb"], dtype=np.float32).shape == (COUNT, 8)
    with pytest.raises(TypeError, match="several columns"):
        np.asarray(mixed[:3])


def test_raw_samples_of_a_mapped_file_are_viewed(tmp_path):
    path = tmp_path / "raw.tsl"
    with ts.Writer(path, {"x": ts.tensor("f32", (4,))}, profile="raw") as writer:
        writer.write(x=np.arange(400, dtype=np.float32).reshape(100, 4))
    view = ts.open(path, io="mmap")["x"].view(17)
    assert view.readonly
    array = view.numpy()
    np.testing.assert_array_equal(array, [68, 69, 70, 71])
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    with pytest.raises(ValueError, match="mapped"):
        ts.open(path, io="pread")["x"].view(17)


def test_parts_have_nothing_in_common(mixed):
    train, rest = mixed.split([0.8, 0.2], seed=3)
    labels = [part[:]["label"].tolist() for part in (train, rest)]
    assert sorted(labels[0] + labels[1]) == list(range(COUNT)) and len(train) == len(labels[0])
    assert 350 < len(train) < 450 and labels[0] == sorted(labels[0])
    assert mixed.split([0.8, 0.2], seed=4)[0][:]["label"].tolist() != labels[0]
    again = pickle.loads(pickle.dumps(rest))
    assert again[:]["label"].tolist() == labels[1] and rest["label"][0] == labels[1][0]
    batches = ts.Loader(rest, 7, columns=["label"], last_batch="exact", order="shuffled")
    assert sorted(label for batch in batches for label in batch["label"].tolist()) == labels[1]
    chosen = mixed.select([5, 3, 5])
    assert [row["label"] for row in chosen] == [5, 3, 5] and pickle.loads(pickle.dumps(chosen))[1]["label"] == 3
    for fractions in ([], [0.5, 0.6], [0.0], [-1.0], [float("nan")], [1e-12]):
        with pytest.raises(ValueError):
            mixed.split(fractions)
    with pytest.raises(ValueError, match="already"):
        chosen.split([1.0])
    assert chosen.select([1, 2, 0])[:]["label"].tolist() == [3, 5, 5]
    assert rest.select([4, 2])[:]["label"].tolist() == [labels[1][4], labels[1][2]]
    with pytest.raises(IndexError):
        mixed.select([COUNT])
    with pytest.raises(TypeError, match="batches"):
        chosen.__arrow_c_stream__()


def test_a_pattern_without_files_is_not_found(tmp_path):
    with pytest.raises(FileNotFoundError, match="match"):
        ts.open(tmp_path / "zz*.tsl")


def test_a_column_named_twice_is_an_error(mixed):
    for names in (["label", "label"], ("label", "emb", "label")):
        with pytest.raises(ValueError, match="twice"):
            mixed.take([0], columns=names)
        with pytest.raises(ValueError, match="twice"):
            ts.Loader(mixed, 5, columns=names)


def test_schemas_are_mappings_that_compare_and_pickle(mixed):
    schema = mixed.schema
    assert isinstance(schema, Mapping)
    assert schema.get("label") == schema["label"] and schema.get("nothing") is None and schema.get("nothing", 3) == 3
    assert mixed[:2].get("label").tolist() == [0, 1] and mixed[:2].get("nothing", 3) == 3
    again = pickle.loads(pickle.dumps(schema))
    assert again == schema and again.metadata == {"made": "here"} and {**again} == {**schema}
    assert ts.Schema(dict(schema)) != schema and ts.Schema(dict(schema), metadata={"made": "here"}) == schema
    for column in schema.values():
        assert pickle.loads(pickle.dumps(column)) == column
    noted = ts.list_(ts.tensor("f16", (None, 3), cast_from="f32", metadata={"a": "b"}), nullable=True)
    assert pickle.loads(pickle.dumps(noted)) == noted and noted != schema["emb"]


def test_options_are_any_mapping(mixed, tmp_path):
    dtypes = MappingProxyType({"emb": "f32"})
    assert mixed.take([0], casts=dtypes)["emb"].dtype == "f32"
    with ts.Writer(tmp_path / "x.tsl", MappingProxyType({"x": ts.tensor("i64")})) as writer:
        writer.write(x=[1])
    with pytest.raises(TypeError, match="dict"):
        mixed.take([0], casts=[("emb", "f32")])


def test_masks_are_bools_for_all_samples(mixed):
    mask = np.arange(COUNT) % 3 == 0
    expected = np.flatnonzero(mask).tolist()
    for key in (mask, mask.tolist(), list(mask), memoryview(mask)):
        assert mixed[key].indices.tolist() == mixed.take(key).indices.tolist() == expected
        assert mixed["label"][key].tolist() == mixed["label"].take(key).tolist() == expected
        assert mixed.select(key)["label"][:].tolist() == expected
    assert mixed[np.zeros(COUNT, bool)].indices.tolist() == [] == mixed[[]].indices.tolist()
    for wrong in (mask[:-1], [True]):
        with pytest.raises(IndexError, match=f"mask has {len(wrong)} bools, but there are {COUNT} samples"):
            mixed[wrong]
    for wrong in (itertools.repeat(True), itertools.cycle([True, False])):
        with pytest.raises(IndexError, match=f"mask has more than {COUNT} bools, but there are {COUNT} samples"):
            mixed.take(wrong)
    for wrong in ([True, 1], [1, True]):
        with pytest.raises(TypeError, match="boolean mask"):
            mixed[wrong]


def test_names_among_numbers_get_the_right_advice(mixed):
    with pytest.raises(TypeError, match=r"dataset.take\(indices, columns="):
        mixed[["mel", "label"]]
    for key in ((5, "mel"), ("mel", 5)):
        with pytest.raises(TypeError, match=r"dataset\[5\]\['mel'\] or dataset\['mel'\]\[5\]"):
            mixed[key]


def test_a_dataset_is_closed_at_the_end_of_a_block(mixed_path):
    with ts.open(mixed_path) as dataset:
        batch, column, part = dataset[:3], dataset["label"], dataset.select([4])
    assert batch["label"].tolist() == [0, 1, 2]  # batches stay valid after close
    assert column[2] == 2 and part[0]["label"] == 4
    for use in (len, pickle.dumps, lambda closed: closed[0], lambda closed: ts.Loader(closed, 2)):
        with pytest.raises(ValueError, match="the dataset is closed"):
            use(dataset)
    assert repr(dataset) == f"tensilo.Dataset {mixed_path}: closed"
    assert dataset._repr_html_() == f"<div>tensilo.Dataset {mixed_path}: closed</div>"
    dataset.close()
    with pytest.raises(ZeroDivisionError):
        with ts.open(mixed_path):
            raise ZeroDivisionError
