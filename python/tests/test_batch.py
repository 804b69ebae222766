"""Batches: selections and pickles."""

import multiprocessing
import pickle
import tempfile

import numpy as np
import pytest
from arbitrary import same, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensilo as ts
from conftest import SCHEMA, assert_is_sample


def assert_same(batch, expected):
    """Asserts that two batches have the same samples of the same columns."""
    assert batch.indices.tolist() == expected.indices.tolist() and batch.keys() == expected.keys()
    for name, column in batch.items():
        other = expected[name]
        assert (column.dtype, column.shape, column.levels, column.nullable, column.null_count) == (
            other.dtype,
            other.shape,
            other.levels,
            other.nullable,
            other.null_count,
        )
        assert same(column.tolist(), other.tolist())
        if column.is_tensor:
            assert column.array().tobytes() == other.array().tobytes()
        else:
            assert [part.tobytes() for part in column.ragged()] == [part.tobytes() for part in other.ragged()]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.booleans(), st.data())
def test_some_samples_are_those_of_the_dataset(table, bf16, data):
    with tempfile.TemporaryDirectory() as folder:
        dataset = ts.convert(table, f"{folder}/x.tsl", bf16=bf16)
        batch, count = dataset[:], len(dataset)
        chosen = data.draw(st.lists(st.integers(-count, count - 1), max_size=9))
        part = slice(*data.draw(st.tuples(st.none() | st.integers(-3, count), st.none() | st.integers(-3, count))))
        mask = data.draw(st.lists(st.booleans(), min_size=count, max_size=count))
        for key in (chosen, part, mask, np.array(mask)):
            assert_same(batch[key], dataset[key])
            assert_same(pickle.loads(pickle.dumps(dataset[key])), dataset[key])
            for name, column in batch.items():
                assert same(column[key].tolist(), dataset[name][key].tolist())


def test_slices_of_fixed_and_padded_columns_keep_nulls(tmp_path):
    columns = {"x": ts.tensor("i32", (2,), nullable=True), "y": ts.list_(ts.tensor("i32"), nullable=True)}
    values = {"x": [None if i % 3 == 1 else [i, i + 1] for i in range(20)]}
    values["y"] = [None if i % 5 == 2 else [i] * (i % 4) for i in range(20)]
    with ts.Writer(tmp_path / "x.tsl", columns) as writer:
        writer.write(**values)
    batch = next(iter(ts.Loader(tmp_path / "x.tsl", 20, order="sequential", pad={"y": 0}, last_batch="exact")))
    for i in range(20):
        for some in (batch[i : i + 1], pickle.loads(pickle.dumps(batch))[[i]]):
            assert some["x"].tolist() == values["x"][i : i + 1]
            assert some["y"].tolist() == batch["y"][i : i + 1].tolist()
            assert (some["y"][0] is None) == (values["y"][i] is None)


def test_padded_samples_stay_padded(mixed):
    loader = ts.Loader(mixed, 8, columns=["mel", "words", "label"], order="sequential", pad={"mel": -1.0, "words": 0})
    batch = next(iter(loader))
    for some, samples in ((batch[2:5], [2, 3, 4]), (pickle.loads(pickle.dumps(batch)), range(8))):
        assert some["mel"].is_tensor and some["mel"].shape == (len(samples), *batch["mel"].shape[1:])
        assert some["words"].shape == (len(samples), *batch["words"].shape[1:])
        for i, number in enumerate(samples):
            assert some["mel"][i].tolist() == batch["mel"][number].tolist()
            assert some["words"][i].tolist() == batch["words"][number].tolist()


def read(numbers):
    path, start, end = numbers
    return ts.open(path)[start:end]


def test_a_process_returns_batches(mixed_path):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        batches = pool.map(read, [(mixed_path, 0, 0), (mixed_path, 3, 9)])
    assert len(batches[0]) == 0 and batches[0].keys() == list(SCHEMA)
    assert batches[1].indices.tolist() == [3, 4, 5, 6, 7, 8]
    for row, i in zip(batches[1].rows(), range(3, 9), strict=True):
        assert_is_sample(row, i)


def test_a_pickled_or_sliced_batch_has_its_epoch_and_position(mixed):
    batches = iter(ts.Loader(mixed, 10, columns=["label"], order="shuffled"))
    next(batches)
    batch = next(batches)
    for again in (pickle.loads(pickle.dumps(batch)), batch[:]):
        assert (again.epoch, again.position, again.substituted) == (batch.epoch, 10, [])
        assert again.indices.tolist() == batch.indices.tolist() == again["label"].tolist()
    column = pickle.loads(pickle.dumps(batch["label"]))
    assert (column.name, column.tolist()) == ("label", batch["label"].tolist())


def test_changed_values_are_preserved(mixed):
    batch = mixed[:4]
    batch["label"].numpy()[:] = [9, 8, 7, 6]
    assert batch[[3, 0]]["label"].tolist() == [6, 9]
    assert pickle.loads(pickle.dumps(batch))["label"].tolist() == [9, 8, 7, 6]


def test_damaged_pickles_are_errors(mixed):
    make, (samples, origin, columns) = mixed[:3].__reduce__()
    assert len(make(samples, origin, columns)) == 3
    with pytest.raises(ValueError, match="4 samples|3 samples"):
        make([*samples, 4], origin, columns)
    for i, column in enumerate(columns):
        name, kind, lists, count, extents, values, _ = column
        for wrong in (
            (name, kind, lists, count + 1, extents, values, None),
            (name, kind, lists, count, extents + b"\1", values, None),
            (name, kind, lists, count, extents, values + b"\1\2\3", None),
            (name, kind, [*lists, ([3], None)], count, extents, values, None),
            (name, kind, lists, count, extents, values, b""),
        ):
            with pytest.raises(ValueError):
                make(samples, origin, [*columns[:i], wrong, *columns[i + 1 :]])


def test_samples_that_a_batch_does_not_have(mixed):
    batch = mixed[:4]
    for key in ([4], [0, -5], [True, False], np.ones(5, bool)):
        for source in (batch, batch["mel"]):
            with pytest.raises(IndexError):
                source[key]
    for key in ([1.5], [[1]], {"a": 1}.items(), ["a"]):
        with pytest.raises(TypeError):
            batch[key]
