"""Batches that a GPU decodes equal the batches that the CPU decodes.

The GPU is emulated, which needs an extension with the feature ``emulator``
(``MATURIN_PEP517_ARGS="--features emulator"``), unless ``TENSILO_GPU`` is the number of a real one.
"""

import os
import pickle
import tarfile

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT, ROOT, optional
from tensilo import _gpu

pytestmark = pytest.mark.usefixtures("gpu")


@pytest.fixture
def numpy_allocator(gpu):
    """Returns an array allocator, and the list of its allocations."""
    if not gpu.is_emulated:
        pytest.skip("its memory is not on the host")
    allocated = []

    class Memory:
        def __init__(self, byte_count):
            self.bytes = np.full(byte_count, 0xEE, np.uint8)
            allocated.append(self)

        def data_ptr(self):
            return self.bytes.ctypes.data

    return Memory, allocated


@pytest.mark.parametrize("min_device_bytes", [0, None])
def test_batches_with_their_memory(mixed, min_device_bytes, gpu, numpy_allocator):
    options = {"columns": ["label", "emb", "mel", "text"], "order": "shuffled", "last_batch": "exact"}
    loader = ts.Loader(mixed, 64, _gpu=gpu, _min_device_bytes=min_device_bytes, **options)
    memory, allocated = numpy_allocator
    count = 0
    for (batch, memory_of_batch), expected in zip(
        loader._iter_on_device(memory, 0), ts.Loader(mixed, 64, **options), strict=True
    ):
        assert (
            batch.indices.tolist() == expected.indices.tolist() and batch["text"].tolist() == expected["text"].tolist()
        )
        for name in ["label", "emb", "mel"]:
            start, end = batch[name]._device_range
            values = expected[name].ragged()[0] if name == "mel" else expected[name].array()
            assert memory_of_batch.bytes[start:end].tobytes() == values.tobytes(), name
        assert batch["mel"]._row_offsets().tolist() == expected["mel"].ragged()[1].tolist()
        slots = [(start // 12, shape) for start, shape in batch["mel"]._sample_slots()]
        assert slots == [
            (start, row.shape)
            for start, row in zip(expected["mel"].ragged()[1].tolist()[:-1], expected["mel"], strict=True)
        ]
        count += 1
    assert count == len(allocated) == len(loader) == 8
    metrics = loader.metrics()
    assert metrics["batches"] == 8 and metrics["samples"] == COUNT
    assert metrics["copied_bytes"] > 0 and metrics["copying_seconds"] > 0


def test_the_state_is_that_of_batches_that_were_taken(mixed, gpu, numpy_allocator):
    memory, allocated = numpy_allocator
    options = {"columns": ["label"], "order": "shuffled", "last_batch": "exact"}
    on_host = [batch["label"].tolist() for batch in ts.Loader(mixed, 50, **options)]
    loader = ts.Loader(mixed, 50, _gpu=gpu, **options)
    batches = loader._iter_on_device(memory, 0)
    for taken in range(1, 4):
        next(batches)
        state = loader.state_dict()
        assert (loader.epoch, state["position"]) == (0, 50 * taken)
    del batches
    assert len(allocated) <= 5  # at most two of them prefetched
    resumed = ts.Loader(mixed, 50, **options)
    resumed.load_state_dict(state)
    assert [batch["label"].tolist() for batch in resumed] == on_host[3:]


def test_errors_of_the_allocator_are_raised(mixed, gpu):
    class FullError(Exception):
        pass

    def full(byte_count):
        raise FullError(byte_count)

    loader = ts.Loader(mixed, 50, columns=["label"], _gpu=gpu)
    with pytest.raises(FullError):
        next(loader._iter_on_device(full, 0))


def test_memory_is_shared_by_dlpack_and_used_again(gpu):
    if not gpu.is_emulated:
        pytest.skip("NumPy has no memory of GPUs")
    memory = gpu.allocate(1000)
    array = memory.array(256, "f32", (2, 3))
    assert array.__dlpack_device__() == (1, 0)
    shared = np.from_dlpack(array)
    assert shared.dtype == np.float32 and shared.shape == (2, 3)
    shared[:] = 7
    addresses = {memory.data_ptr()}
    del memory, array
    assert (shared == 7).all()
    for wrong in [(1000, (1,)), (0, (251,)), (0, (1 << 40, 1 << 40))]:
        with pytest.raises(ValueError):
            gpu.allocate(1000).array(wrong[0], "f32", wrong[1])
    del shared
    for _ in range(20):
        memory = gpu.allocate(1000)
        addresses.add(memory.data_ptr())
        del memory
    assert len(addresses) <= 8
    with pytest.raises(BufferError):
        gpu.allocate(4).array(0, "f32", (1,)).__dlpack__(copy=True)


def test_names_of_devices():
    assert _gpu.number_of("cuda") is None and _gpu.number_of("cuda:3") == 3
    for wrong in ["", "mps", "cuda:", "cuda:x", "cpu"]:
        with pytest.raises(ValueError, match="NVIDIA"):
            _gpu.number_of(wrong)
    assert _gpu.opened(0) is _gpu.opened(0)


def test_a_process_that_was_forked_has_no_gpu(monkeypatch, gpu):
    monkeypatch.setattr(_gpu, "_opened", {(os.getpid() + 1, 0): gpu})
    with pytest.raises(RuntimeError, match="spawn"):
        _gpu.opened(0)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_batches_do_not_go_on_in_a_process_that_was_forked(mixed, gpu, numpy_allocator):
    batches = ts.Loader(mixed, 50, columns=["label"], _gpu=gpu)._iter_on_device(numpy_allocator[0], 0)
    next(batches)
    child = os.fork()
    if child == 0:
        try:
            next(batches)
        except RuntimeError as error:
            os._exit(7 if "spawn" in str(error) else 1)
        os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    assert len(list(batches)) == 9


def assert_same(found, expected):
    """Asserts that two batches of tensors are equal."""
    import torch

    assert list(found) == list(expected)
    for name, tensor in expected.items():
        if not isinstance(tensor, torch.Tensor):
            assert type(found[name]) is type(tensor)
            pairs = zip(found[name], tensor, strict=True)
            assert all(torch.equal(a.cpu(), b) if isinstance(b, torch.Tensor) else a == b for a, b in pairs), name
        elif tensor.is_nested:
            assert torch.equal(found[name].values().cpu(), tensor.values()), name
            assert torch.equal(found[name].offsets().cpu(), tensor.offsets()), name
        else:
            assert found[name].dtype == tensor.dtype and torch.equal(found[name].cpu(), tensor), name


@pytest.mark.parametrize("min_device_bytes", [0, None])
@pytest.mark.parametrize("pad", [{}, {"mel": -1, "wave": (7, 4), "image": 3, "name": 0}])
def test_torch_tensors(ragged, min_device_bytes, pad):
    optional("torch")
    from tensilo.torch import Loader

    options = {"order": "shuffled", "last_batch": "exact", "null_masks": True, "pad": pad, "casts": {"mel": "f32"}}
    loader = Loader(ragged, 64, device="cuda", min_device_bytes=min_device_bytes, **options)
    on_host = Loader(ragged, 64, **options)
    for _ in range(2):
        for found, expected in zip(loader, on_host, strict=True):
            assert_same(found, expected)
    assert loader.metrics()["batches"] == 5 and loader.metrics()["device_decoding_seconds"] > 0


def test_torch_loaders_are_pickled_and_resumed(ragged):
    optional("torch")
    from tensilo.torch import Loader

    loader = Loader(ragged, 40, device="cuda:0", columns=["flag"], transform=lambda batch: batch["flag"].sum())
    expected = [int(total) for total in loader]
    loader.set_epoch(0)
    batches = iter(loader)
    assert [int(next(batches)) for _ in range(3)] == expected[:3]
    loader.transform = None
    again = pickle.loads(pickle.dumps(loader))
    assert again.device == "cuda:0" and [int(batch["flag"].sum()) for batch in again] == expected[3:]


def test_torch_arguments(mixed):
    torch = optional("torch")
    from torch.utils.data import DataLoader

    from tensilo.torch import Loader

    for wrong in [{"pin_memory": True, "device": "cuda"}, {"device": "mps"}, {"min_device_bytes": 0}]:
        with pytest.raises(ValueError):
            Loader(mixed, 4, **wrong)
    assert Loader(mixed, 4, device=torch.device("cpu")).device is None
    loader = Loader(mixed, 4, device="cuda")
    with pytest.raises(ValueError, match="DataLoader workers"):
        list(DataLoader(loader, None, num_workers=1, multiprocessing_context="fork"))


def test_a_damaged_sample_is_the_error_of_the_processor(ragged):
    optional("torch")
    from tensilo.torch import Loader

    data = bytearray(ragged.read_bytes())
    data[2000] ^= 1
    ragged.write_bytes(data)

    def outcome(**options):
        try:
            return [list(batch) for batch in Loader(ragged, 60, order="sequential", io="pread", **options)]
        except ts.CorruptionError as error:
            return str(error), error.column, error.samples

    assert outcome(device="cuda", min_device_bytes=0) == outcome()
    assert isinstance(outcome(), tuple)


# all samples, none, and the first segment
@pytest.mark.parametrize(("max_bytes", "count"), [(None, 300), (1, 0), (17_000, 64)])
def test_resident_samples(ragged, max_bytes, count):
    torch = optional("torch")
    from tensilo.cuda import ResidentDataset

    dataset = ts.open(ragged)
    names, pad, dtypes = ["mel", "maybe", "wave", "flag"], {"mel": -1, "wave": 7}, {"mel": "f32"}
    calls = []
    resident = ResidentDataset(
        dataset,
        names,
        pad=pad,
        casts=dtypes,
        null_masks=True,
        max_bytes=max_bytes,
        progress=lambda *at: calls.append(at),
    )
    assert (len(resident), resident.resident) == (300, count) and resident.nbytes > 0
    assert all(phase == "sending" and done <= total == 300 for phase, done, total in calls)
    assert "of 300 samples" in repr(resident)
    for indices in [[5, 3, 5, 0, 299], torch.arange(299, -1, -1), torch.arange(300)[::3], np.array([7, 6]), []]:
        found = {name: rows.cpu() for name, rows in resident.gather(indices).items()}
        resident.synchronize()
        rows = [int(i) for i in indices]
        assert found["mel"].shape[:2] in [(len(rows), 6)] and found["mel"].dtype == torch.float32
        for position, i in enumerate(rows):
            mel = torch.full((6, 4), -1.0)
            mel[: i % 7] = i % 100
            assert torch.equal(found["mel"][position], mel)
            assert found["maybe"][position].tolist() == ([0, 0] if i % 5 == 0 else [i, -i])
            assert found["maybe_is_null"][position] == (i % 5 == 0) and found["wave_is_null"][position] == (i % 11 == 0)
            assert found["wave"][position].tolist()[: i % 9] == (list(range(i % 9)) if i % 11 else [7] * (i % 9))
            assert found["flag"][position] == (i % 3 == 0)
    for wrong in [[300], [-1], torch.tensor([0, 1 << 40])]:
        with pytest.raises(IndexError):
            resident.gather(wrong)
    if resident.resident:
        # with indices that the host does not read
        with pytest.raises(IndexError, match="sample 300 is out of range for 300"):
            resident._gathered(torch.tensor([0, 300], device=resident.device), {})
            resident.synchronize()
    for wrong in [[0.5], [True], [[1]]]:
        with pytest.raises(TypeError):
            resident.gather(wrong)


def test_resident_shares_of_ranks(mixed):
    torch = optional("torch")
    from tensilo.cuda import ResidentDataset

    seen = []
    for rank in range(3):
        share = ResidentDataset(mixed, "label", rank=rank, world_size=3)
        labels = share.gather(torch.arange(len(share), device=share.device))["label"]
        assert labels.tolist() == list(share.indices)
        seen += labels.tolist()
    assert seen == list(range(COUNT))
    with pytest.raises(ValueError, match='"text": text, bytes'):
        ResidentDataset(mixed, ["label", "text"])
    with pytest.raises(ValueError, match="padded"):
        ResidentDataset(mixed, "mel")
    with pytest.raises(ValueError, match="rank 3"):
        ResidentDataset(mixed, "label", rank=3, world_size=3)


def test_resident_samples_that_break_a_rule_are_errors_of_the_processor(tmp_path):
    torch = optional("torch")
    from tensilo.cuda import ResidentDataset

    refused = 0
    with tarfile.open(ROOT / "format-spec/vectors/invalid.tar") as vectors:
        for member in vectors:
            if not member.name.endswith(".hex"):
                continue
            lines = vectors.extractfile(member).read().decode().splitlines()
            path = tmp_path / "vector.tsl"
            path.write_bytes(bytes.fromhex("".join(line.split("#")[0] for line in lines)))
            try:
                dataset = ts.open(path)
                name = next(name for name in dataset.columns if None not in dataset.schema[name].shape)
                resident = ResidentDataset(dataset, name, max_bytes="1GiB")
            except (ts.TensiloError, ValueError, StopIteration):
                continue
            found = outcome(lambda resident=resident: gather_all(torch, resident))
            expected = outcome(
                lambda dataset=dataset, name=name: dataset.take(range(len(dataset)), [name])[name].torch()
            )
            if isinstance(expected, str):
                refused += 1
                assert found == expected, member.name
            else:
                assert torch.equal(found.cpu(), expected), member.name
    assert refused > 10, refused


def gather_all(torch, resident):
    """Gathers all samples by indices that the host does not read."""
    (tensor,) = resident._gathered(torch.arange(len(resident), device=resident.device), {}).values()
    resident.synchronize()
    return tensor


def outcome(work):
    """Returns the result of a function, or the message of its error."""
    try:
        return work()
    except ts.TensiloError as error:
        return str(error)
