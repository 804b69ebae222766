"""Arrays, and their exchange with NumPy and other libraries."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tensilo as ts
from conftest import optional, sample

DTYPES = ["f16", "f32", "f64", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool"]


def written(tmp_path_factory, dtype, values):
    path = tmp_path_factory.mktemp("a") / "a.tsl"
    with ts.Writer(path, {"x": ts.tensor(dtype, values.shape[1:])}) as writer:
        writer.write(x=values)
    return ts.open(path)


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_goes_through_numpy(tmp_path_factory, dtype):
    bits = np.random.default_rng(7).integers(0, 2 if dtype == "bool" else 256, 2 * 3 * 8, dtype=np.uint8)
    name = dtype if dtype == "bool" else {"f": "float", "i": "int", "u": "uint"}[dtype[0]] + dtype[1:]
    values = bits.view(name)[: 2 * 3].reshape(2, 3)
    column = written(tmp_path_factory, dtype, values)[:]["x"]
    for array in (column.numpy(), np.asarray(column), np.from_dlpack(column), np.asarray(column.array())):
        assert array.dtype == np.dtype(name) and array.shape == (2, 3)
        assert array.tobytes() == values.tobytes()
    assert column.array().tobytes() == values.tobytes()
    assert bytes(memoryview(column.array())) == values.tobytes()


def test_bf16_is_that_of_ml_dtypes_or_an_error_that_names_two_ways(mixed, monkeypatch):
    column = mixed.take([3])["emb"]
    bits = column.numpy(view="uint16")
    wide = column.numpy(dtype="float32")
    np.testing.assert_array_equal(wide, [sample(3)["emb"]])
    np.testing.assert_array_equal((bits.astype(np.uint32) << 16).view(np.float32), wide)
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="float32.*uint16"):
        column.numpy()
    np.testing.assert_array_equal(column.numpy(dtype="float64"), wide)


def test_bf16_of_ml_dtypes(mixed):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = mixed.take([3])["emb"].numpy()
    assert array.dtype == ml_dtypes.bfloat16
    array[0, 0] = 5
    np.testing.assert_array_equal(np.asarray(mixed.take([3])["emb"]), mixed.take([3])["emb"].numpy())


def test_memory_is_shared_and_writable(mixed):
    column = mixed.take([3, 4], columns=["mel", "label"])["label"]
    column.numpy()[0] = 77
    assert column.tolist() == [77, 4]
    np.from_dlpack(column)[1] = 78
    memoryview(column.array())[0] = 76
    assert column.tolist() == [76, 78] and mixed["label"][3] == 3


def test_arrays_outlive_their_batch(mixed):
    arrays = [mixed.take([i])["label"].numpy() for i in range(100)]
    capsules = [mixed.take([i])["label"].__dlpack__(max_version=(1, 0)) for i in range(100)]
    del capsules[::2]
    assert [int(array[0]) for array in arrays] == list(range(100))


def test_an_array_is_indexed_by_its_first_dimension():
    array = pickle.loads(pickle.dumps(ts.Array)) and made([[1, 2, 3], [4, 5, 6]])
    assert array.shape == (2, 3) and array.ndim == 2 and len(array) == 2 and array.nbytes == 48
    assert array[1].tolist() == [4, 5, 6] and array[-1][0].item() == 4 and array[0:1].shape == (1, 3)
    assert [row.tolist() for row in array] == [[1, 2, 3], [4, 5, 6]]
    for bad in (2, -3):
        with pytest.raises(IndexError):
            array[bad]
    with pytest.raises(TypeError):
        array["a"]
    with pytest.raises(ValueError):
        array[::2]
    with pytest.raises(ValueError, match="exactly one"):
        array.item()
    with pytest.raises(TypeError):
        len(array[0][0])
    assert array.view("u64").dtype == "u64"
    with pytest.raises(ValueError):
        array.view("i32")


def made(values):
    """Returns an ``Array``."""
    values = np.asarray(values, dtype=np.int64)
    return ts._tensilo._array_of_bytes(values.tobytes(), "i64", values.shape)


def test_arrays_are_pickled(mixed):
    array = mixed[3]["emb"]
    again = pickle.loads(pickle.dumps(array))
    assert again.dtype == "bf16" and again.shape == (8,) and again.tobytes() == array.tobytes()


def test_ragged_samples_are_values_and_offsets(mixed):
    column = mixed.take([4, 0, 2, 3], columns=["mel"])["mel"]
    values, offsets = column.ragged()
    assert column.shape == (4, None, 3) and values.shape == (9, 3) and offsets.tolist() == [0, 4, 4, 6, 9]
    padded = column.padded(-1).numpy()
    assert padded.shape == (4, 4, 3) and (padded[1] == -1).all() and (padded[2, :2] == 2).all()
    assert column.padded(multiple=8).shape == (4, 8, 3)
    words, *offsets = mixed.take([2, 0, 1], columns=["words"])["words"].ragged()
    assert [part.tolist() for part in offsets] == [[0, 2, 2, 3], [0, 2, 2, 4]]
    assert bytes(words.tobytes()) == b"w0w0"


def test_nulls_are_counted_and_masked(mixed):
    text = mixed[:9]["text"]
    assert text.null_count == 2 and text.nulls().tolist() == [i % 7 == 0 for i in range(9)]
    assert text.tolist()[0] is None and mixed[:9]["label"].nulls() is None
    assert text.numpy().dtype == object


@given(st.lists(st.integers(-5, 4)))
def test_members_are_those_of_a_list(indices):
    array = made([10, 11, 12, 13, 14])
    assert [array[i].item() for i in indices] == [[10, 11, 12, 13, 14][i] for i in indices]


def test_dlpack_says_what_it_must(mixed, tmp_path):
    column = mixed.take([1])["label"]
    assert column.__dlpack_device__() == (1, 0) == column.array().__dlpack_device__()
    assert "dltensor_versioned" in repr(column.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(column.__dlpack__())
    with pytest.raises(BufferError):
        column.__dlpack__(dl_device=(2, 0))
    copied = np.from_dlpack(column, copy=True)
    copied[0] = 99
    assert column.tolist() == [1]
    with pytest.raises(BufferError, match="bf16"):
        memoryview(mixed[0]["emb"])
    path = tmp_path / "raw.tsl"
    with ts.Writer(path, {"x": ts.tensor("f32", (4,))}, profile="raw") as writer:
        writer.write(x=np.zeros((3, 4), dtype=np.float32))
    view = ts.open(path, io="mmap")["x"].view(1)
    for version in (None, (1, 0)):
        with pytest.raises(BufferError, match="read"):
            view.__dlpack__(max_version=version)
    assert np.from_dlpack(view, copy=True).tolist() == [0, 0, 0, 0]


def test_an_element_is_a_number():
    array = made([[7, 8]])
    assert int(array[0][0]) == 7 and float(array[0][1]) == 8.0 and [5] * array[0][0] == [5] * 7
    assert bool(made([1])) and not made([0]) and f"{int(array[0][1]):d}" == "8"
    for bad in (int, float, bool):
        with pytest.raises(ValueError, match="exactly one"):
            bad(array)
    with pytest.raises(TypeError):
        [1][array]


@pytest.mark.parametrize("name", DTYPES)
def test_names_of_types_are_those_of_this_package(name):
    width = 1 if name == "bool" else int(name[1:]) // 8
    array = ts._tensilo._array_of_bytes(bytes(range(width)) if name != "bool" else b"\1", name, [1])
    assert array.numpy().itemsize == width and array.numpy(dtype=name).dtype == array.numpy().dtype
    assert array.numpy(view=name).tobytes() == array.tobytes()


def test_copies_are_copies(mixed):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    column = mixed.take([1])["emb"]
    copied = np.array(column, dtype=ml_dtypes.bfloat16, copy=True)
    copied[:] = 9
    assert column.numpy()[0, 0] == 1 and np.shares_memory(np.asarray(column, copy=False), column.numpy())
    with pytest.raises(ValueError, match="copy"):
        np.asarray(column, dtype="float32", copy=False)
    assert np.asarray(mixed.take([])["label"]).shape == (0,)


def test_hostile_arguments_are_exceptions(mixed):
    shape = (2**40,)
    for indices in (np.broadcast_to(np.int64(0), shape), range(2**62)):
        with pytest.raises((MemoryError, IndexError)):
            mixed.take(indices)
    for index in (10**30, -(10**30)):
        for read in (mixed, mixed["label"], mixed[:2], mixed[:2]["label"]):
            with pytest.raises(IndexError):
                read[index]
        with pytest.raises(IndexError):
            mixed.take([index])
    with pytest.raises(ValueError, match="dimensions"):
        ts._tensilo._array_of_bytes(b"0", "u8", [1] * 200)

    class Changes(dict):
        def __str__(self):
            options.clear()
            return "f32"

    options = {"emb": Changes(), "label": "i64"}
    assert mixed.take([0], casts=options)["emb"].dtype == "f32" and not options


def test_an_array_without_dimensions_is_a_buffer(mixed):
    array = ts.open(mixed.uri)["emb"].take([3], dtype="f32").array()[0][0]
    view = memoryview(array)
    assert view.ndim == 0 and view.shape == () and view.tolist() == 3.0 and np.asarray(array).shape == ()


def test_samples_are_padded_to_memory_of_the_caller(mixed):
    column = mixed[:4]["mel"]
    assert column.padded_shape() == (4, 3, 3) and column.padded_shape(multiple=4) == (4, 4, 3)
    out = np.full((4, 4, 3), 9, np.float32)
    assert column.padded(-1, multiple=4, out=out) is out
    np.testing.assert_array_equal(out, column.padded(-1, multiple=4).numpy())
    for wrong in (np.zeros((4, 3, 3), np.float64), np.zeros((4, 4, 3), np.float32)):
        with pytest.raises((TypeError, ValueError), match="out"):
            column.padded(out=wrong)
    with pytest.raises(ValueError, match="nothing to pad"):
        mixed[:4]["emb"].padded_shape()
    rows = mixed.take([4, 4])["mel"]
    values = rows.ragged()[0].numpy().reshape(2, 4, 3)
    with pytest.raises(ValueError, match="out overlaps the samples"):
        rows.padded(out=values)


def test_bf16_is_read_to_an_array_of_ml_dtypes(mixed):
    ml_dtypes = optional("ml_dtypes")
    out = np.zeros((2, 8), ml_dtypes.bfloat16)
    assert mixed["emb"].take([3, 4], out=out) is out
    np.testing.assert_array_equal(out.astype(np.float32)[1], sample(4)["emb"])
    with pytest.raises(TypeError, match="bf16"):
        mixed["label"].take([3], out=np.zeros(1, ml_dtypes.bfloat16))
