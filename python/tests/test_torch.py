"""PyTorch: the dataset for its DataLoader, and the loader."""

import decimal
import pickle
import tempfile
import threading

import numpy as np
import pytest
from arbitrary import same, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensilo as ts
from conftest import COUNT, SCHEMA, optional, sample

torch = optional("torch")

from torch.utils.data import BatchSampler, DataLoader, RandomSampler  # noqa: E402

from tensilo.torch import Dataset, Loader  # noqa: E402


def assert_is_batch(batch, labels):
    """Asserts that a batch has these samples of the mixed data."""
    assert batch["label"].tolist() == labels and batch["label"].dtype == torch.int64
    expected = torch.stack([torch.from_numpy(sample(i)["emb"]) for i in labels])
    assert batch["emb"].dtype == torch.bfloat16 and torch.equal(batch["emb"].float(), expected)
    assert batch["text"] == [sample(i)["text"] for i in labels]
    assert batch["words"] == [sample(i)["words"] for i in labels]
    for row, i in zip(batch["mel"].unbind(), labels, strict=True):
        assert torch.equal(row, torch.from_numpy(sample(i)["mel"]))


def test_a_sample_is_a_dict_of_tensors(mixed):
    row = Dataset(mixed)[3]
    assert row.keys() == SCHEMA.keys()
    assert row["label"].shape == () and row["label"].item() == 3 and row["emb"].shape == (8,)
    assert row["text"] == sample(3)["text"] and Dataset(mixed)[7]["text"] is None
    assert Dataset(mixed, "label")[-1].keys() == {"label"}
    with pytest.raises(IndexError):
        Dataset(mixed)[COUNT]
    with pytest.raises(KeyError):
        Dataset(mixed, ["nothing"])
    with pytest.raises(ValueError):
        Dataset(mixed, casts={"label": "i8"})


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("method", [None, "fork", "spawn", "forkserver"])
def test_a_data_loader_gets_a_tensor_for_each_column(mixed, method):
    workers = {"num_workers": 2, "multiprocessing_context": method} if method else {}
    batches = list(DataLoader(Dataset(mixed), 64, **workers))
    assert len(batches) == 8
    for number, batch in enumerate(batches):
        assert_is_batch(batch, list(range(COUNT))[number * 64 : (number + 1) * 64])
        assert batch["emb"].is_shared() == bool(method)
    seen = torch.cat([batch["label"] for batch in DataLoader(Dataset(mixed, ["label"]), 50, shuffle=True, **workers)])
    assert sorted(seen.tolist()) == list(range(COUNT)) != seen.tolist()


def test_samples_can_be_transformed_and_collated_by_the_caller(mixed):
    dataset = Dataset(mixed, ["label", "emb"], transform=lambda row: {"twice": row["label"] * 2})
    assert next(iter(DataLoader(dataset, 4)))["twice"].tolist() == [0, 2, 4, 6]
    dataset = Dataset(mixed, ["label"])
    batch = next(iter(DataLoader(dataset, 4, collate_fn=lambda rows: [row["label"].item() for row in rows[::-1]])))
    assert batch == [3, 2, 1, 0]
    rows = dataset.__getitems__([5, 6, 7])
    assert torch.utils.data.default_collate(rows[1:])["label"].tolist() == [6, 7]
    assert next(iter(DataLoader(Dataset(mixed, ["emb"], casts={"emb": "f32"}), 4)))["emb"].dtype == torch.float32


def test_the_loader_delivers_tensors(mixed):
    batches = list(Loader(mixed, 64, order="sequential", last_batch="exact"))
    for number, batch in enumerate(batches):
        assert_is_batch(batch, list(range(COUNT))[number * 64 : (number + 1) * 64])
    batch = next(iter(Loader(mixed, 5, columns=["mel"], pad={"mel": 0}, order="sequential")))
    assert batch["mel"].shape == (5, 4, 3) and not batch["mel"].is_nested
    batch["mel"] += 1  # writable


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:This DataLoader will create")
def test_batches_are_transformed(mixed):
    def loader(transform):
        return Loader(mixed, 64, columns=["label"], seed=3, transform=transform)

    plain, doubled = loader(None), loader(_doubled)
    expected = [batch["label"] * 2 for batch in plain]
    found = list(doubled)
    assert len(expected) > 2 and all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))
    assert doubled.state_dict() == plain.state_dict()
    doubled.set_epoch(0)
    for batch, labels in zip(DataLoader(doubled, batch_size=None, num_workers=2), expected, strict=True):
        assert torch.equal(batch, labels)
    with pytest.raises(KeyError, match="absent"):
        next(iter(loader(lambda batch: batch["absent"])))


def _doubled(batch):
    return batch["label"] * 2


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:This DataLoader will create")
@pytest.mark.parametrize("workers", [1, 2, 3])
def test_workers_deliver_the_same_batches_in_the_same_order(mixed, workers):
    expected = [batch["label"].tolist() for batch in Loader(mixed, 32, columns=["label"], order="shuffled", seed=1)]
    loader = Loader(mixed, 32, columns=["label"], order="shuffled", seed=1)
    batches = DataLoader(loader, batch_size=None, num_workers=workers)
    assert [batch["label"].tolist() for batch in batches] == expected


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [0, 2, 3])
def test_a_stateful_data_loader_resumes(mixed, workers):
    stateful = optional("torchdata.stateful_dataloader")

    def made():
        loader = Loader(mixed, 20, columns=["label"], order="shuffled", seed=1)
        return stateful.StatefulDataLoader(loader, batch_size=None, num_workers=workers)

    expected = [batch["label"].tolist() for batch in made()]
    first = made()
    batches = iter(first)
    taken = [next(batches)["label"].tolist() for _ in range(7)]
    second = made()
    second.load_state_dict(first.state_dict())
    assert taken + [batch["label"].tolist() for batch in second] == expected


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:This DataLoader will create")
def test_workers_go_on_where_a_loader_was(mixed):
    options = {"columns": ["label"], "order": "shuffled", "seed": 1}
    expected = [batch["label"].tolist() for batch in Loader(mixed, 20, **options)]
    loader = Loader(mixed, 20, **options)
    batches = iter(loader)
    taken = [next(batches)["label"].tolist() for _ in range(7)]
    state, loader = loader.state_dict(), Loader(mixed, 20, **options)
    loader.load_state_dict(state)
    rest = [batch["label"].tolist() for batch in DataLoader(loader, batch_size=None, num_workers=2)]
    assert taken + rest == expected
    with pytest.raises(ValueError, match="worker"):
        loader.load_state_dict({**state, "taken": 3})
        iter(loader)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_that_stay_deliver_epoch_after_epoch(mixed):
    loader = Loader(mixed, 20, columns=["label"], order="shuffled", seed=1)
    expected = [[batch["label"].tolist() for batch in loader] for _ in range(2)]
    loader.set_epoch(0)
    batches = DataLoader(loader, batch_size=None, num_workers=2, persistent_workers=True)
    assert [[batch["label"].tolist() for batch in batches] for _ in range(2)] == expected


def test_ranks_are_found_and_states_go_on(mixed, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    loader = Loader(mixed, 25, columns=["label"], order="sequential")
    assert (loader.rank, loader.world_size, len(loader)) == (1, 2, 10)
    batches = iter(loader)
    assert next(batches)["label"].tolist() == loader.indices(0).tolist()
    state = loader.state_dict()
    one = Loader(mixed, 50, columns=["label"], rank=0, world_size=1, order="sequential")
    one.load_state_dict(state)
    assert next(iter(one))["label"].tolist() == list(range(50, 100))
    again = pickle.loads(pickle.dumps(loader))
    assert again.state_dict()["state"] == state["state"] and again.rank == 1
    loader.set_epoch(4)
    assert loader.epoch == 4 and "verdict" in loader.metrics()
    with pytest.raises(ValueError, match="together"):
        Loader(mixed, 5, rank=0)
    with pytest.raises(ValueError, match="state"):
        loader.load_state_dict({})


def test_memory_is_not_pinned_without_a_device(mixed):
    if torch.accelerator.is_available():
        assert next(iter(Loader(mixed, 5, columns=["emb"], pin_memory=True)))["emb"].is_pinned()
    else:
        with pytest.warns(UserWarning, match="accelerator"):
            assert len(list(Loader(mixed, 50, columns=["emb"], pin_memory=True))) == 10


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_samples_of_a_worker_can_be_returned_as_they_are(mixed):
    loader = DataLoader(Dataset(mixed, ["label"]), 4, num_workers=1, collate_fn=lambda rows: rows, timeout=60)
    rows = next(iter(loader))
    assert [row["label"].item() for row in rows] == [0, 1, 2, 3]


def test_what_is_read_only_is_copied(tmp_path):
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("f32", (4,))}, profile="raw") as writer:
        writer.write(x=torch.ones(3, 4))
    view = ts.open(tmp_path / "x.tsl", io="mmap")["x"].view(1)
    tensor = view.torch()
    tensor[0] = 7
    assert view.tolist() == [1, 1, 1, 1]
    with pytest.raises(BufferError, match="read"):
        torch.from_dlpack(view)


def test_columns_become_tensors(mixed):
    batch = mixed[1:4]
    assert torch.equal(batch["emb"].torch(), torch.from_dlpack(batch["emb"]))
    assert batch["mel"].torch().to_padded_tensor(0.0).shape == (3, 3, 3)
    assert batch["mel"].torch().is_nested and mixed[0]["emb"].torch().shape == (8,)
    with pytest.raises(TypeError, match="utf8"):
        batch["text"].torch()
    out = torch.zeros((2, 8), dtype=torch.bfloat16)
    assert mixed["emb"].take(torch.tensor([3, 4]), out=out) is out
    assert torch.equal(out.float()[0], torch.from_numpy(sample(3)["emb"]))
    schema = {"x": ts.tensor(torch.bfloat16, (8,))}
    with pytest.raises(ValueError, match="contiguous"):
        mixed["emb"].take([3], out=torch.zeros((1, 16), dtype=torch.bfloat16)[:, ::2])
    assert schema["x"].dtype == "bf16"


def test_tensors_are_written(tmp_path):
    values = torch.arange(12, dtype=torch.float32).reshape(3, 4)
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("bf16", (4,)), "y": ts.tensor("f32", (None,))}) as writer:
        writer.write(x=values.bfloat16(), y=[values[0], values[1, :2], values[2, ::2]])
    dataset = ts.open(tmp_path / "x.tsl")
    assert torch.equal(dataset[:]["x"].torch(), values.bfloat16())
    assert dataset[:]["y"].tolist() == [[0, 1, 2, 3], [4, 5], [8, 10]]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_pads(mixed, workers):
    dataset = Dataset(mixed, ["mel", "label", "words"], pad={"mel": (-1.0, 2), "words": 0})
    for number, batch in enumerate(DataLoader(dataset, 16, num_workers=workers)):
        labels = list(range(COUNT))[number * 16 : (number + 1) * 16]
        assert batch["label"].tolist() == labels and list(batch) == ["mel", "label", "words"]
        assert batch["mel"].shape[1:] == (4, 3) and batch["mel"].is_shared() == bool(workers)
        for row, i in zip(batch["mel"], labels, strict=True):
            expected = torch.full((4, 3), -1.0)
            expected[: i % 5] = i
            assert torch.equal(row, expected)
        assert batch["words"].dtype == torch.uint8 and batch["words"].shape[1:] == (2, 2)
    with pytest.raises(KeyError):
        Dataset(mixed, ["label"], pad={"mel": 0})
    with pytest.raises(ValueError, match="pad"):
        Dataset(mixed, pad={"label": 0})
    with pytest.raises(ValueError, match="represented exactly"):
        Dataset(mixed, pad={"mel": 2**53 + 1})


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:This DataLoader will create")
def test_nulls_have_masks(tmp_path):
    schema = {"x": ts.tensor("i64", nullable=True), "y": ts.tensor("f32", (None,), nullable=True), "z": ts.tensor("u8")}
    with ts.Writer(tmp_path / "x.tsl", schema) as writer:
        writer.write(x=[1, None, 3, None], y=[[1.0], [2.0, 3.0], None, []], z=[1, 2, 3, 4])
    expected = {"x": [1, 0, 3, 0], "x_is_null": [False, True, False, True], "y_is_null": [False, False, True, False]}
    options = {"pad": {"y": 0}, "null_masks": True}
    dataset = Dataset(tmp_path / "x.tsl", **options)
    loader = Loader(tmp_path / "x.tsl", 4, order="sequential", **options)
    ways = [DataLoader(dataset, 4), DataLoader(dataset, 4, num_workers=1), loader]
    for way in [*ways, DataLoader(loader, batch_size=None, num_workers=1)]:
        batch = next(iter(way))
        assert list(batch) == ["x", "y", "z", "x_is_null", "y_is_null"]
        assert {name: batch[name].tolist() for name in expected} == expected and batch["y"].shape == (4, 2)
        assert batch["x_is_null"].dtype == torch.bool
        batch = next(iter(DataLoader(Dataset(tmp_path / "x.tsl", ["z"], null_masks=True), 4)))
        assert list(batch) == ["z"]
    assert "x_is_null" not in next(iter(DataLoader(Dataset(tmp_path / "x.tsl", pad={"y": 0}), 4)))


def test_samples_of_any_shapes_are_tensors(tmp_path):
    path = tmp_path / "images.tsl"
    images = [torch.full((height, 3 - height, 2), height, dtype=torch.uint8) for height in (1, 2)]
    with ts.Writer(path, {"image": ts.tensor("u8", (None, None, 2), nullable=True)}) as writer:
        writer.write(image=[*images, None])
    loaders = [
        Loader(path, 3, order="sequential"),
        DataLoader(Dataset(path), 3),
        DataLoader(Dataset(path), 3, num_workers=1),
    ]
    for loader in loaders:
        found = next(iter(loader))["image"]
        assert all(map(torch.equal, found[:2], images)) and found[2] is None


def test_options_of_a_data_loader_are_explained(mixed):
    hints = {
        "shuffle": "order=",
        "num_workers": "decode_threads",
        "drop_last": "last_batch=",
        "colums": "columns, casts",
    }
    for name, hint in hints.items():
        with pytest.raises(TypeError, match=f"{name}.*{hint}"):
            Loader(mixed, 5, **{name: 1})


def test_a_training_resumes_between_epochs(mixed):
    def train(loader, epochs, steps=None):
        labels = []
        for epoch in range(loader.epoch, epochs):
            for batch in loader:
                labels.append((epoch, batch["label"].tolist()))
                if len(labels) == steps:
                    return labels
        return labels

    def loader():
        return Loader(mixed, 100, columns=["label"], order="shuffled", seed=5)

    whole = train(loader(), 3)
    assert len(whole) == 15
    for steps in (0, 1, 4, 5, 6, 10, 15):
        first = loader()
        seen = train(first, 3, steps) if steps else []
        again = loader()
        again.load_state_dict(first.state_dict())
        assert seen + train(again, 3) == whole


def test_loaders_and_datasets_show_themselves(mixed):
    loader = Loader(mixed, 5, rank=1, world_size=2)
    assert "500 samples" in repr(loader) and "rank 1 of 2" in repr(loader)
    assert "500 samples" in repr(Dataset(mixed)) and "label" in repr(Dataset(mixed).__getitems__([1])[0])


def bits(tensor):
    """Returns the bytes of a tensor, or None for a null."""
    return None if tensor is None else bytes(tensor.contiguous().flatten().view(torch.uint8).tolist())


def assert_has_bits(column, found):
    """Asserts that PyTorch gets the stored values of a column."""
    if column.levels or column.dtype in ("utf8", "bytes"):
        assert same(found, column.tolist())
    elif column.is_tensor:
        assert bits(found) == column.array().tobytes()
    elif None not in column.shape[2:]:
        assert bits(found.values()) == column.ragged()[0].tobytes()
    else:
        expected = [None if one is None else one.tobytes() for one in map(column.__getitem__, range(len(column)))]
        assert list(map(bits, found)) == expected


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.booleans())
def test_tensors_have_the_bits_that_are_stored(table, bf16):
    with tempfile.TemporaryDirectory() as folder:
        dataset = ts.convert(table, f"{folder}/x.tsl", bf16=bf16)
        loaded = next(iter(Loader(dataset, len(dataset), order="sequential")))
        collated = next(iter(DataLoader(Dataset(dataset), len(dataset))))
        for name, column in dataset[:].items():
            assert_has_bits(column, loaded[name])
            assert_has_bits(column, collated[name])
            if column.is_tensor and column.dtype not in ("utf8", "bytes"):
                assert_has_bits(column, column.torch())
                assert_has_bits(column, torch.from_dlpack(column))


def test_numbers_in_a_list_are_a_batch(mixed):
    dataset = Dataset(mixed)
    for key in ([5, 3, -1], torch.tensor([5, 3, 499]), (5, 3, 499)):
        assert_is_batch(dataset[key], [5, 3, 499])
    assert_is_batch(dataset[2:4], [2, 3])
    assert Dataset(mixed, "label")[np.arange(COUNT) < 2]["label"].tolist() == [0, 1]
    assert Dataset(mixed, "label")[[]]["label"].shape == (0,)
    assert Dataset(mixed, "mel", pad={"mel": 0})[[4, 1]]["mel"].shape == (2, 4, 3)
    with pytest.raises(IndexError):
        dataset[[COUNT]]
    doubled = Dataset(mixed, "label", transform=lambda row: {"twice": row["label"] * 2})
    assert doubled[3]["twice"].item() == 6 and doubled[[3, 1]]["twice"].tolist() == [6, 2]


@pytest.mark.parametrize("workers", [0, 2])
def test_a_sampler_of_batches(mixed, workers):
    """Bulk loading as in PyTorch's documentation."""
    dataset = Dataset(mixed, ["label", "mel"])
    sampler = BatchSampler(RandomSampler(dataset), 64, False)
    batches = list(DataLoader(dataset, batch_size=None, sampler=sampler, num_workers=workers))
    assert [len(batch["label"]) for batch in batches] == [64] * 7 + [52]
    assert sorted(torch.cat([batch["label"] for batch in batches]).tolist()) == list(range(COUNT))


def test_threads_share_an_iterator(mixed):
    loader, seen, errors = Loader(mixed, 5, columns=["label"], last_batch="exact"), [], []
    batches = iter(loader)

    def take():
        try:
            for batch in batches:
                seen.extend(batch["label"].tolist())
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == [] and sorted(seen) == list(range(COUNT)) and loader.epoch == 1


@pytest.mark.parametrize(("name", "text"), [("RANK", "x"), ("RANK", "-1"), ("WORLD_SIZE", "2.0"), ("WORLD_SIZE", "0")])
def test_an_environment_variable_that_is_no_number_is_named(mixed, monkeypatch, name, text):
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert (Loader(mixed, 5).rank, Loader(mixed, 5).world_size) == (1, 2)
    monkeypatch.setenv(name, text)
    with pytest.raises(ValueError, match=f"environment variable {name} is '{text}', but must be an integer"):
        Loader(mixed, 5)
    assert Loader(mixed, 5, rank=0, world_size=1).rank == 0
    # an empty variable counts as unset
    monkeypatch.setenv("RANK", "")
    monkeypatch.setenv("WORLD_SIZE", "")
    assert (Loader(mixed, 5).rank, Loader(mixed, 5).world_size) == (0, 1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_columns_without_values_are_refused_at_once(tmp_path):
    pa = optional("pyarrow")
    price = pa.array([decimal.Decimal("1.50")], pa.decimal128(12, 2))
    dataset = ts.convert(pa.table({"price": price, "n": [1], "words": [["a"]]}), tmp_path / "a.tsl")
    with pytest.raises(TypeError, match="price.*casts="):
        Dataset(dataset)
    assert Dataset(dataset, columns=["n", "words"])[0]["n"] == 1
