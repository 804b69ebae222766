"""Datasets with Dask."""

import numpy as np
import pytest

from conftest import COUNT, optional, sample
from tensilo import distributed

dask = optional("dask")
optional("pandas")
tdask = pytest.importorskip("tensilo.dask")

from rows import OPTIONS, content, write_inputs  # noqa: E402, needs pyarrow


@pytest.mark.parametrize("scheduler", ["synchronous", "threads", "processes"])
def test_a_conversion_gives_the_bytes_of_one_process(tmp_path, monkeypatch, scheduler):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1")
    (tmp_path / "in").mkdir()
    inputs = write_inputs(tmp_path / "in")
    tasks = distributed.plan(inputs, tmp_path / "one", **OPTIONS)
    distributed.commit(tmp_path / "one", map(distributed.run, tasks))
    with dask.config.set({"scheduler": scheduler, "multiprocessing.context": "spawn", "num_workers": 2}):
        tdask.convert(inputs, tmp_path / "train", **OPTIONS)
    assert content(tmp_path / "train") == content(tmp_path / "one")


def test_a_frame_has_all_samples_once(mixed, mixed_path):
    frame = tdask.read(mixed_path, ["label", "text", "emb"], partitions=7)
    assert frame.npartitions == 7 and len(frame) == COUNT
    with dask.config.set(scheduler="synchronous"):
        found = frame.compute()
        assert int(frame["label"].sum().compute()) == sum(range(COUNT))
    assert found.index.tolist() == list(range(COUNT)) == found["label"].tolist()
    assert found["text"][3] == sample(3)["text"] and found["text"].isna()[7]
    np.testing.assert_array_equal(found["emb"][5], sample(5)["emb"])
    assert len(tdask.read(mixed.select([]))) == 0
    assert tdask.read(mixed).npartitions == 1
