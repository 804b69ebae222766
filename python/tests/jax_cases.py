"""JAX: column arrays and the loader. ``test_jax.py`` runs this file."""

import pickle
import tempfile

import numpy as np
import pytest
from arbitrary import tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensilo as ts
from conftest import COUNT, optional, sample

jax = optional("jax")

import tensilo.jax  # noqa: E402


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.booleans())
def test_arrays_have_the_bits_that_are_stored(table, bf16):
    with tempfile.TemporaryDirectory() as folder, jax.enable_x64(True):
        dataset = ts.convert(table, f"{folder}/x.tsl", bf16=bf16)
        loaded = next(iter(tensilo.jax.Loader(dataset, len(dataset), order="sequential")))
        for name, column in dataset[:].items():
            if column.is_tensor and column.dtype not in ("utf8", "bytes"):
                for way in (column.jax(), loaded[name]):
                    assert np.asarray(way).tobytes() == column.array().tobytes()


def test_a_batch_has_arrays_and_lists(mixed):
    batch = next(iter(tensilo.jax.Loader(mixed, 64, order="sequential")))
    assert batch["emb"].dtype == "bfloat16" and batch["emb"].shape == (64, 8)
    for i in (0, 5, 63):
        assert np.array_equal(np.asarray(batch["emb"][i], np.float32), sample(i)["emb"])
        assert isinstance(batch["mel"][i], jax.Array) and np.array_equal(batch["mel"][i], sample(i)["mel"])
        assert (batch["text"][i], batch["words"][i]) == (sample(i)["text"], sample(i)["words"])
    padded = next(iter(tensilo.jax.Loader(mixed, 5, order="sequential", columns=["mel"], pad={"mel": -1})))
    assert padded["mel"].shape == (5, 4, 3) and padded["mel"][0].max() == -1


def test_batches_are_transformed(mixed):
    options = {"columns": ["label"], "order": "sequential"}
    batch = next(iter(tensilo.jax.Loader(mixed, 5, transform=lambda batch: batch["label"] * 2, **options)))
    assert batch.tolist() == [2 * sample(i)["label"] for i in range(5)]


def test_an_epoch_is_divided_and_resumed(mixed):
    def loader(rank=0, world_size=1):
        options = {"columns": ["label"], "order": "shuffled", "seed": 7, "last_batch": "exact"}
        return tensilo.jax.Loader(mixed, 50 // world_size, rank=rank, world_size=world_size, **options)

    whole = [label for batch in loader() for label in batch["label"].tolist()]
    assert sorted(whole) == list(range(COUNT))
    first = loader()
    batches = iter(first)
    seen = [label for _ in range(3) for label in next(batches)["label"].tolist()]
    state = pickle.loads(pickle.dumps(first.state_dict()))
    again = [loader(rank, 2) for rank in range(2)]
    rest = []
    for one in again:
        one.load_state_dict(state)
        assert one.epoch == 0
        rest += [label for batch in one for label in batch["label"].tolist()]
    assert sorted(seen + rest) == list(range(COUNT)) and seen == whole[: len(seen)]


def test_arrays_are_global_ones_with_a_sharding(mixed):
    mesh = jax.make_mesh((1,), ("batch",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("batch"))
    batch = next(iter(tensilo.jax.Loader(mixed, 16, columns=["emb"], sharding=sharding, order="sequential")))
    assert batch["emb"].sharding == sharding and batch["emb"].shape == (16, 8) and batch["emb"].dtype == "bfloat16"


def test_options_that_do_not_exist_are_explained(mixed):
    with pytest.raises(TypeError, match="shuffle.*order="):
        tensilo.jax.Loader(mixed, 5, shuffle=True)
    assert not hasattr(tensilo.jax.Loader(mixed, 5), "nothing")


def test_a_gpu_delivers_what_the_processor_delivers(ragged, gpu):
    Loader = tensilo.jax.Loader
    options = {"order": "shuffled", "last_batch": "exact", "pad": {"mel": 0}, "casts": {"mel": "f32"}}
    for found, expected in zip(
        Loader(ragged, 64, device="cuda", **options), Loader(ragged, 64, **options), strict=True
    ):
        assert list(found) == list(expected)
        for name, array in expected.items():
            rows = zip(found[name], array, strict=True)
            assert all(a == b if isinstance(a, (str, list, type(None))) else (a == b).all() for a, b in rows), name
            assert isinstance(array, list) or found[name].dtype == array.dtype
    with pytest.raises(ValueError, match="sharding"):
        Loader(ragged, 4, device="cuda", sharding=object())
