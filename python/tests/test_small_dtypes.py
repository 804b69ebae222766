"""Floats of 4 to 8 bits, integers of 4, and complex numbers."""

import numpy as np
import pytest

import tensilo as ts

SMALL = {
    "f8_e4m3fn": "float8_e4m3fn",
    "f8_e4m3fnuz": "float8_e4m3fnuz",
    "f8_e5m2": "float8_e5m2",
    "f8_e5m2fnuz": "float8_e5m2fnuz",
    "f8_e8m0fnu": "float8_e8m0fnu",
    "f6_e2m3": "float6_e2m3fn",
    "f6_e3m2": "float6_e3m2fn",
    "f4_e2m1": "float4_e2m1fn",
    "i4": "int4",
    "u4": "uint4",
}
BITS = {**dict.fromkeys(SMALL, 8), "f6_e2m3": 6, "f6_e3m2": 6, "f4_e2m1": 4, "i4": 4, "u4": 4}


def all_of(name):
    """Returns an ml_dtypes array with every value of a dtype."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    return np.arange(1 << BITS[name], dtype=np.uint8).view(getattr(ml_dtypes, SMALL[name]))


@pytest.mark.parametrize("name", SMALL)
def test_each_value_is_that_of_ml_dtypes(tmp_path, name):
    values = all_of(name)
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"x": ts.tensor(values.dtype, ())}) as writer:
        writer.write(x=values)
    dataset = ts.open(path)
    assert dataset["x"].dtype == name
    column = dataset[:]["x"]
    wide = values.astype(np.float32)
    np.testing.assert_array_equal(np.array(column.tolist(), dtype=np.float32), wide)
    found = column.numpy()
    assert found.dtype == values.dtype and found.view(np.uint8).tobytes() == values.view(np.uint8).tobytes()
    np.testing.assert_array_equal(column.numpy(dtype="float32"), wide)
    assert np.asarray(column.array()).dtype == values.dtype
    assert np.signbit(column.tolist()).tolist() == np.signbit(wide).tolist() or np.isnan(wide).any()


def test_without_ml_dtypes_the_bits_are_left(tmp_path, monkeypatch):
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"x": ts.tensor("i4", (3,))}) as writer:
        writer.write(x=[[-8, 7, -1]])
    column = ts.open(path)[:]["x"]
    assert column.tolist() == [[-8, 7, -1]]
    monkeypatch.setitem(__import__("sys").modules, "ml_dtypes", None)
    with pytest.raises(TypeError, match="i4.*uint8"):
        column.numpy()
    assert column.numpy(view="uint8").tolist() == [[8, 7, 15]]
    with pytest.raises(BufferError):
        memoryview(column.array())


@pytest.mark.parametrize(("name", "value"), [("f4_e2m1", 2.5), ("i4", 8), ("u4", -1), ("f8_e4m3fn", 1e9)])
def test_numbers_that_a_type_lacks_are_refused_and_not_rounded(tmp_path, name, value):
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor(name, ())}) as writer:
        with pytest.raises(TypeError, match=f"not a valid {name} element"):
            writer.write(x=[value])
        writer.write(x=[1])


def test_bits_above_an_element_are_refused(tmp_path):
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("u4", (2,))}) as writer:
        array = ts.open(_of_bytes(tmp_path))["x"].take([0]).array().view("u4")
        with pytest.raises(ValueError, match="above the lowest 4"):
            writer.write(x=array)


def _of_bytes(folder):
    path = folder / "bytes.tsl"
    with ts.Writer(path, {"x": ts.tensor("u8", (2,))}) as writer:
        writer.write(x=np.array([[3, 0x1F]], np.uint8))
    return path


def test_complex_numbers_are_those_of_numpy(tmp_path):
    values = (np.arange(12) - 1.5j * np.arange(12)[::-1]).astype(np.complex64).reshape(4, 3)
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"x": ts.tensor(np.complex64, (3,))}) as writer:
        writer.write(x=values[:3])
        writer.write(x=values[3:].tolist())
    column = ts.open(path)[:]["x"]
    assert column.dtype == "complex64"
    np.testing.assert_array_equal(column.numpy(), values)
    np.testing.assert_array_equal(np.from_dlpack(column), values)
    assert column.tolist() == values.tolist()


@pytest.mark.parametrize("name", [name for name in SMALL if name.startswith("f8")])
def test_pytorch_types_are_preserved(tmp_path, name):
    torch = pytest.importorskip("torch")
    dtype = getattr(torch, SMALL[name])
    tensor = torch.arange(256, dtype=torch.uint8).view(dtype)
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"x": ts.tensor(dtype, (256,))}) as writer:
        writer.write(x=tensor[None])
    found = ts.open(path)[:]["x"].torch()
    assert found.dtype == dtype
    assert torch.equal(found.view(torch.uint8)[0], tensor.view(torch.uint8))
