"""The loader: order, state, shares of ranks."""

import itertools
import json
import pickle

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT


def labels(batches):
    return [int(label) for batch in batches for label in batch["label"].numpy()]


@pytest.mark.parametrize("order", ["sequential", "shuffled", "windowed", None])
def test_an_epoch_has_each_sample_once(mixed, order):
    loader = ts.Loader(mixed, 32, columns=["label"], order=order, last_batch="exact", seed=3)
    first, second = labels(loader), labels(loader)
    assert sorted(first) == sorted(second) == list(range(COUNT)) and loader.epoch == 2
    assert (first == list(range(COUNT))) == (order == "sequential")
    assert (first == second) == (order == "sequential")
    loader.set_epoch(0)
    assert labels(loader) == first


def test_a_state_goes_on_with_other_ranks_and_batches(mixed):
    first = ts.Loader(mixed, 10, columns=["label"], order="shuffled", seed=5, rank=1, world_size=4, last_batch="exact")
    others = [
        ts.Loader(mixed, 10, columns=["label"], order="shuffled", seed=5, rank=rank, world_size=4, last_batch="exact")
        for rank in (0, 2, 3)
    ]
    seen = []
    for loader in [first, *others]:
        batches = iter(loader)
        seen += labels([next(batches) for _ in range(5)])
    state = json.loads(json.dumps(first.state_dict()))
    assert state["position"] == 200 == others[0].state_dict()["position"]
    for rank in range(3):
        loader = ts.Loader(mixed, 7, columns=["label"], rank=rank, world_size=3)
        loader.load_state_dict(pickle.loads(pickle.dumps(state)))
        seen += labels(loader)
    assert sorted(seen) == list(range(COUNT))


def test_a_state_is_where_the_loader_is(mixed):
    loader = ts.Loader(mixed, 50, columns=["label"], order="shuffled")
    assert (loader.state_dict()["epoch"], loader.state_dict()["position"]) == (0, 0)
    batches = iter(loader)
    next(batches)
    assert loader.state_dict()["position"] == 50
    assert len(list(batches)) == 9 and (loader.state_dict()["epoch"], loader.epoch) == (1, 1)
    state = loader.state_dict()
    again = ts.Loader(mixed, 50, columns=["label"], order="shuffled")
    again.load_state_dict(state)
    assert again.state_dict()["state"] == state["state"] and labels(again) == labels(loader)


@pytest.mark.parametrize(
    "bad", [{}, {"state": "zz"}, {"state": "00"}, {"state": "é" * 192}, {"state": "0" * 192}, {"state": 3}]
)
def test_what_is_no_state_is_refused(mixed, bad):
    with pytest.raises((ValueError, TypeError)):
        ts.Loader(mixed, 50).load_state_dict(bad)


def test_an_epoch_that_was_left_is_over(mixed):
    loader = ts.Loader(mixed, 50, columns=["label"], order="shuffled")
    first = next(iter(loader))["label"].tolist()
    state = loader.state_dict()
    assert next(iter(loader))["label"].tolist() != first and loader.epoch == 1
    loader.load_state_dict(state)
    iter(loader)  # no batch is taken
    assert loader.epoch == 0 and loader.state_dict()["position"] == 50


def test_samples_that_were_padded_are_not_null(tmp_path):
    schema = {"l": ts.list_(ts.tensor("i64", nullable=True))}
    with ts.Writer(tmp_path / "x.tsl", schema) as writer:
        writer.write(l=[[None, 1], [2, 3, 4], []])
    batch = next(iter(ts.Loader(ts.open(tmp_path / "x.tsl"), 3, pad={"l": -1}, order="sequential")))
    expected = [[-1, 1, -1], [2, 3, 4], [-1, -1, -1]]
    assert batch["l"].array().tolist() == batch["l"].tolist() == expected


def test_a_state_of_another_job_is_refused(mixed, speech):
    state = ts.Loader(mixed, 5, seed=1).state_dict()
    with pytest.raises(ValueError, match="seed"):
        ts.Loader(mixed, 5, seed=2).load_state_dict(state)
    with pytest.raises(ValueError, match="id"):
        ts.Loader(speech, 1).load_state_dict(state)


def test_samples_of_a_step_are_those_that_come(mixed):
    loader = ts.Loader(mixed, 16, columns=["label"], order="shuffled", rank=1, world_size=2)
    expected = [loader.indices(step).tolist() for step in range(len(loader))]
    assert (
        [batch.indices.tolist() for batch in loader]
        == expected
        == [
            batch["label"].tolist()
            for batch in ts.Loader(mixed, 16, columns=["label"], order="shuffled", rank=1, world_size=2)
        ]
    )


def test_batches_are_padded_and_of_other_types(mixed):
    loader = ts.Loader(mixed, 5, columns=["mel", "emb"], pad={"mel": (-1, 8)}, casts={"emb": "f32"}, order="sequential")
    batch = next(iter(loader))
    assert batch["mel"].shape == (5, 8, 3) and batch["mel"].numpy()[0].max() == -1
    assert batch["emb"].numpy().dtype == np.float32 and batch.epoch == 0 and batch.position == 0


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"batch_size": 0}, ValueError, ""),
        ({"batch_size": -1}, ValueError, "below 0"),
        ({"batch_size": 1 << 40}, ValueError, "too large"),
        ({"batch_size": 1000}, ValueError, "500 samples.* last_batch to pad or exact"),
        ({"batch_size": 5, "seed": -1}, ValueError, "below 0"),
        ({"batch_size": 5, "prefetch": -1}, ValueError, "below 0"),
        ({"batch_size": 5, "decode_threads": -1}, ValueError, "below 0"),
        ({"batch_size": 5, "order": "random"}, ValueError, "shuffled"),
        ({"batch_size": 5, "window_sizes": (3, 3, 1), "order": "shuffled"}, ValueError, "windowed"),
        ({"batch_size": 5, "window_sizes": (0, 3, 1)}, ValueError, "run"),
        ({"batch_size": 5, "last_batch": "cut"}, ValueError, "drop"),
        ({"batch_size": 5, "columns": ["x"]}, KeyError, "emb"),
        ({"batch_size": 5, "casts": {"label": "i8"}}, ValueError, "label"),
        ({"batch_size": 5, "pad": {"label": 0}}, ValueError, "pad"),
        ({"batch_size": 5, "pad": {"mel": "zero"}}, TypeError, "pad"),
        ({"batch_size": 5, "rank": 2, "world_size": 2}, ValueError, "rank"),
        ({"batch_size": 5, "decode_threads": "all"}, ValueError, "auto"),
        ({"batch_size": 5, "on_damage": "ignore"}, ValueError, "substitute"),
    ],
    ids=str,
)
def test_bad_options_are_exceptions(mixed, options, error, words):
    with pytest.raises(error, match=words or None):
        ts.Loader(mixed, **options)


def test_a_loader_opens_what_it_is_given(mixed, mixed_path):
    batches = [batch["label"].tolist() for batch in ts.Loader(mixed_path, 100, columns="label", order="sequential")]
    assert batches == [batch["label"].tolist() for batch in ts.Loader(mixed, 100, columns="label", order="sequential")]
    with pytest.raises(FileNotFoundError):
        ts.Loader("nothing.tsl", 5)
    with pytest.raises(ValueError, match="below 0"):
        ts.Loader(mixed, 5).set_epoch(-1)


def test_damage_is_an_error_or_is_substituted(tmp_path):
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"x": ts.tensor("f32", (64,))}, profile="raw") as writer:
        writer.write(x=np.repeat(np.arange(2000, dtype=np.float32), 64).reshape(2000, 64))
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    dataset = ts.open(path)
    errors = 0
    batches = iter(ts.Loader(dataset, 100, order="sequential"))
    while True:
        try:
            next(batches)
        except ts.CorruptionError:
            errors += 1
        except StopIteration:
            break
    assert errors >= 1
    loader = ts.Loader(dataset, 100, order="sequential", on_damage="substitute")
    substituted = [len(batch.substituted) for batch in loader]
    assert len(substituted) == 20 and sum(substituted) > 0 and loader.metrics()["substitutes"] == sum(substituted)


def test_loader_metrics_have_a_verdict(mixed):
    loader = ts.Loader(mixed, 50)
    assert len(loader) == 10 == len(list(loader))
    metrics = loader.metrics()
    assert metrics["batches"] == 10 and metrics["samples"] == 500 and "waited" in metrics["verdict"]
    assert "500 samples" in repr(loader)


def test_batches_stay_when_the_loader_is_gone(mixed):
    batches = list(ts.Loader(mixed, 50, columns=["label"], order="sequential"))
    assert labels(batches) == list(range(COUNT))


def test_waiting_is_counted(mixed):
    loader = ts.Loader(mixed, 2, columns=["mel"], decode_threads=1, prefetch=1)
    for _ in loader:
        pass  # a loop that does nothing waits for every batch
    metrics = loader.metrics()
    assert metrics["batches"] == COUNT // 2 and 0 < metrics["first_batch_seconds"] < metrics["elapsed_seconds"]
    assert 0 < metrics["waited_seconds"] < metrics["elapsed_seconds"]


def test_an_epoch_of_which_all_was_taken_is_over(mixed):
    loader = ts.Loader(mixed, 50, columns=["label"], order="shuffled")
    expected = [[batch["label"].tolist() for batch in loader] for _ in range(3)]
    loader.set_epoch(0)
    # frameworks that know the length do not request another batch
    seen = [[batch["label"].tolist() for batch in itertools.islice(loader, len(loader))] for _ in range(3)]
    assert seen == expected and loader.epoch == 3


def test_an_iteration_of_which_nothing_was_taken_changes_nothing(mixed):
    loader = ts.Loader(mixed, 50, columns=["label"], order="shuffled")
    expected = [batch["label"].tolist() for batch in loader]
    loader.set_epoch(0)
    batches = iter(loader)
    taken = [next(batches)["label"].tolist() for _ in range(3)]
    state = loader.state_dict()
    loader.load_state_dict(state)
    for _ in range(3):
        iter(loader)
    assert loader.state_dict() == state
    assert taken + [batch["label"].tolist() for batch in loader] == expected
    assert loader.epoch == 1


@pytest.mark.parametrize("last_batch", ["drop", "pad", "exact"])
def test_a_dataset_without_samples_is_said_to_be_one(tmp_path, last_batch):
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("f32")}):
        pass
    with pytest.raises(ValueError, match="^there are no samples, so an epoch has no batch$"):
        ts.Loader(tmp_path / "x.tsl", 4, last_batch=last_batch)


def test_the_batches_that_are_left(mixed):
    def loader():
        return ts.Loader(mixed, 50, columns=["label"], order="shuffled", last_batch="exact")

    first = loader()
    assert len(first) == first.batches_left == 10
    batches = iter(first)
    assert first.batches_left == 10  # no batch was taken: the next `for` starts here again
    next(batches)
    next(batches)
    assert first.batches_left == 10  # the next `for` is the next epoch
    second = loader()
    second.load_state_dict(first.state_dict())
    assert len(second) == 10 and second.batches_left == 8 == len(list(second))
    assert second.batches_left == 10


def test_set_epoch_after_a_state_was_loaded(mixed, recwarn):
    def loaded():
        first = ts.Loader(mixed, 50, columns=["label"])
        next(iter(first))
        second = ts.Loader(mixed, 50, columns=["label"])
        second.load_state_dict(first.state_dict())
        return second

    loaded().set_epoch(1)
    after = loaded()
    assert len(list(after)) == 9
    after.set_epoch(1)
    assert not recwarn.list
    with pytest.warns(UserWarning, match="set_epoch restarts the epoch of the loaded state"):
        loaded().set_epoch(0)
