"""NVIDIA DALI: the protocol of its sources, and real pipelines if DALI is installed."""

import numpy as np
import pytest

import tensilo as ts
from conftest import optional
from tensilo.dali import Source

COUNT = 100


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """Samples of every form that a pipeline takes."""
    path = tmp_path_factory.mktemp("dali") / "samples.tsl"
    schema = {
        "image": ts.binary(),
        "mel": ts.tensor("bf16", (None, 4), cast_from="f32"),
        "label": ts.tensor("i64", ()),
        "vector": ts.tensor("f32", (3,)),
        "maybe": ts.tensor("i32", (), nullable=True),
        "words": ts.list_(ts.utf8()),
    }
    with ts.Writer(path, schema) as writer:
        for i in range(COUNT):
            writer.write(**sample(i), maybe=[None if i == 7 else i], words=[["a"] * (i % 3)])
    return path


def sample(i):
    return {
        "image": [bytes([i]) * (1 + i % 5)],
        "mel": [np.full((1 + i % 3, 4), i, np.float32)],
        "label": np.array([i]),
        "vector": np.array([[i, i + 0.5, -i]], np.float32),
    }


def loader(path, **options):
    return ts.Loader(path, 32, seed=1, last_batch="exact", **options)


def assert_are_samples(batch):
    """Checks a batch of image, mel, label, vector."""
    image, mel, label, vector = batch
    assert len(image) == len(mel) == len(label) == len(vector)
    for i, number in enumerate(label):
        expected = sample(int(number))
        np.testing.assert_array_equal(image[i], np.frombuffer(expected["image"][0], np.uint8))
        np.testing.assert_array_equal(mel[i], expected["mel"][0])
        np.testing.assert_array_equal(vector[i], expected["vector"][0])
        assert (image[i].dtype, mel[i].dtype, vector[i].dtype) == (np.uint8, np.float32, np.float32)


NAMES = ["image", "mel", "label", "vector"]


def test_each_pass_is_an_epoch(path):
    batches = loader(path)
    source = Source(batches, NAMES)
    orders = []
    for _ in range(2):
        iter(source)  # DALI requests more iterators than it reads
        labels = []
        for batch in source:
            assert_are_samples(batch)
            labels.extend(batch[2].tolist())
        assert sorted(labels) == list(range(COUNT))
        orders.append(labels)
    assert orders[0] != orders[1]
    assert orders[0] == [label for batch in loader(path) for label in batch["label"].numpy().tolist()]


def test_what_dali_cannot_take_is_refused(path):
    with pytest.raises(ValueError, match="'maybe' has nulls"):
        list(Source(loader(path), "maybe"))
    with pytest.raises(ValueError, match="'words' has lists"):
        list(Source(loader(path), ["words"]))


def test_a_pipeline_reads_epochs(path):
    optional("nvidia.dali")
    from nvidia.dali import fn, pipeline_def

    @pipeline_def(batch_size=32, num_threads=2, device_id=None)
    def pipeline(batches):
        outputs = fn.external_source(Source(batches, NAMES), num_outputs=len(NAMES), cycle="raise")
        return tuple(outputs)

    built = pipeline(loader(path))
    built.build()
    for _ in range(2):
        labels = []
        with pytest.raises(StopIteration):
            while True:
                image, mel, label, vector = built.run()
                count = len(label)
                at = lambda output: [np.asarray(output.at(i)) for i in range(count)]  # noqa: B023, E731, used at once
                assert_are_samples([at(image), at(mel), np.array(at(label)), np.array(at(vector))])
                labels.extend(int(value) for value in at(label))
        assert sorted(labels) == list(range(COUNT))
        built.reset()
