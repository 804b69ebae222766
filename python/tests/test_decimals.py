"""Decimals and timestamps: arrays have values, or are refused."""

import decimal
import pickle

import numpy as np
import pyarrow as pa
import pytest

import tensilo as ts


@pytest.fixture
def table():
    prices = [decimal.Decimal("1.50"), decimal.Decimal("-2.25"), None]
    return pa.table(
        {
            "price": pa.array(prices, pa.decimal128(12, 2)),
            "score": pa.array(prices, pa.decimal128(22, 2)),
            "label": pa.array([decimal.Decimal(number) for number in (1, 2, 3)], pa.decimal128(9, 0)),
            "at": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
        }
    )


def test_columns_of_decimals_are_named(table, tmp_path):
    with pytest.warns(UserWarning) as warned:
        dataset = ts.convert(table, tmp_path / "a.tsl")
    texts = [str(warning.message) for warning in warned]
    assert len(texts) == 2
    assert all("decimal128[" in text and "casts={" in text for text in texts)
    assert dataset.schema["price"].logical_type == dataset["price"].logical_type == "decimal128[12, 2]"
    assert dataset["at"].logical_type == "timestamp[us, UTC]"


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("name", "out"), [("price", np.empty(2, "i8")), ("score", np.empty((2, 16), "u1"))])
def test_arrays_do_not_have_the_integers_of_decimals(table, tmp_path, name, out):
    dataset = ts.convert(table, tmp_path / "a.tsl")
    column = dataset[name]
    for wrong in [
        lambda: column[0],
        lambda: column[:].numpy(),
        lambda: column[:].array(),
        lambda: column[:].tolist(),
        lambda: np.asarray(column),
        lambda: column.take([0, 1], out=out),
        lambda: dataset[0],
    ]:
        with pytest.raises(TypeError, match="casts="):
            wrong()
    assert pa.array(column[:]).to_pylist() == table[name].to_pylist()
    with pytest.raises(ValueError, match=name):
        ts.Loader(dataset, 1, columns=[name])


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_casts_of_a_read_are_not_of_the_integers_of_decimals(table, tmp_path):
    prices = pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("2.25")], pa.decimal32(9, 2))
    dataset = ts.convert(table.append_column("cents", prices), tmp_path / "a.tsl")
    assert dataset["cents"].dtype == "i32"
    for name, dtype in (("cents", "f64"), ("cents", "i64"), ("score", "f32")):
        for wrong in [
            lambda name=name, dtype=dtype: dataset[name].take([0], dtype=dtype),
            lambda name=name, dtype=dtype: dataset.take([0], [name], casts={name: dtype}),
            lambda name=name, dtype=dtype: dataset.take([0], casts={name: dtype}),
        ]:
            with pytest.raises(ValueError, match=f"{name}.*casts="):
                wrong()
    same = dataset["cents"].take([0, 2], dtype="i32")
    assert same.stored.numpy().tolist() == [150, 225]
    assert dataset["label"].take([0], dtype="f64").numpy().tolist() == [1]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_stored_integers_can_be_read(table, tmp_path):
    dataset = ts.convert(table, tmp_path / "a.tsl")
    assert dataset["price"][:2].stored.numpy().tolist() == [150, -225]
    assert dataset["label"][:].numpy().tolist() == [1, 2, 3]
    assert dataset["at"][:].numpy().view("M8[us]").tolist() == np.array([1, 2, 3], "M8[us]").tolist()
    assert pa.table(dataset).equals(table)


def test_casts_give_values(table, tmp_path):
    dataset = ts.convert(table, tmp_path / "a.tsl", casts={"price": "f64", "score": "float32", "label": np.int64})
    assert dataset["price"][:2].numpy().tolist() == [1.5, -2.25]
    assert dataset["score"][:2].numpy().tolist() == [1.5, -2.25]
    assert dataset["label"][:].numpy().tolist() == [1, 2, 3]
    assert dataset.schema["price"].cast_from == "decimal"
    assert pickle.loads(pickle.dumps(dataset.schema["price"])) == dataset.schema["price"]
    batch = next(iter(ts.Loader(dataset, 2, columns=["price"], order="sequential")))
    assert batch["price"].numpy().tolist() == [1.5, -2.25]
    with pytest.raises(ts.InputError, match="1.50"):
        ts.convert(table, tmp_path / "b.tsl", casts={"price": "i64"})


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_writer_does_not_take_the_integers_of_decimals_for_values(table, tmp_path):
    lists = pa.array([[decimal.Decimal("1.50"), None], None, []], pa.list_(pa.decimal128(12, 2)))
    table = table.select(["price", "score"]).append_column("prices", lists)
    dataset = ts.convert(table, tmp_path / "a.tsl")
    prices = dataset["price"][:2]
    with ts.Writer(tmp_path / "b.tsl", {"price": ts.tensor("i64")}) as writer:
        with pytest.raises(TypeError, match="casts="):
            writer.write(price=prices)
        writer.write(price=prices.stored)
    assert ts.open(tmp_path / "b.tsl")["price"][:].numpy().tolist() == [150, -225]
    with ts.Writer(tmp_path / "c.tsl", dataset.schema) as writer:
        for some in (dataset[:2], dataset[2:]):
            writer.write(**some)
    assert pa.table(ts.open(tmp_path / "c.tsl")).to_pylist() == table.to_pylist()
