"""Datasets with Spark."""

import os
import shutil
import sys

import numpy as np
import pytest

import tensilo as ts
from conftest import COUNT, optional, sample
from tensilo import distributed

optional("pyspark")
if shutil.which("java") is None:
    pytest.skip("Spark needs Java", allow_module_level=True)
tspark = pytest.importorskip("tensilo.spark")

from pyspark.sql import SparkSession  # noqa: E402, needs pyspark

from rows import OPTIONS, content, write_inputs  # noqa: E402, needs pyarrow

pytestmark = pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    """Starts Spark with two workers, which retry failed tasks."""
    folder = tmp_path_factory.mktemp("spark")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("PYTHONPATH", os.path.dirname(__file__))
        patch.setenv("SOURCE_DATE_EPOCH", "1")
        builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.warehouse.dir", str(folder)).config("spark.local.dir", str(folder))
        session = builder.config("spark.driver.bindAddress", "127.0.0.1").getOrCreate()
        session.dataSource.register(tspark.Source)
        yield session
        session.stop()


def test_a_conversion_gives_the_bytes_of_one_process(spark, tmp_path):
    (tmp_path / "in").mkdir()
    inputs = write_inputs(tmp_path / "in")
    tasks = distributed.plan(inputs, tmp_path / "one", **OPTIONS)
    distributed.commit(tmp_path / "one", map(distributed.run, tasks))
    tspark.convert(spark, inputs, tmp_path / "train", **OPTIONS)
    assert content(tmp_path / "train") == content(tmp_path / "one")


def test_a_frame_has_all_samples_once(spark, mixed_path):
    reader = spark.read.format("tensilo").option("columns", "label,text,emb").option("partitions", "5")
    frame = reader.load(str(mixed_path))
    assert frame.rdd.getNumPartitions() == 5
    rows = sorted(frame.collect(), key=lambda row: row["label"])
    assert [row["label"] for row in rows] == list(range(COUNT))
    assert rows[3]["text"] == sample(3)["text"] and rows[7]["text"] is None
    np.testing.assert_array_equal(rows[5]["emb"], sample(5)["emb"])


def fails_once(folder):
    """Returns a function of batches whose first attempt in each partition fails after some rows."""

    def run(batches):
        from pyspark import TaskContext

        attempt = TaskContext.get().attemptNumber()
        for batch in batches:
            yield batch
            if attempt == 0:
                raise RuntimeError("the first attempt fails")

    return run


def test_a_frame_becomes_a_dataset_and_is_appended(spark, tmp_path):
    frame = spark.range(1000).selectExpr("id", "cast(id as string) as text", "array(id, id + 1) as pair")
    frame = frame.repartition(3).mapInArrow(fails_once(tmp_path), frame.schema)
    path = tmp_path / "train"
    frame.write.format("tensilo").mode("append").save(str(path))
    dataset = ts.open(path)
    assert dataset.version == 1
    assert sorted(dataset["id"].take(range(1000)).numpy().tolist()) == list(range(1000))
    row = dataset[17]
    assert row["text"] == str(row["id"]) and row["pair"].tolist() == [row["id"], row["id"] + 1]
    frame.write.format("tensilo").mode("append").save(str(path))
    assert (ts.open(path).version, len(ts.open(path))) == (2, 2000)
    frame.limit(0).write.format("tensilo").mode("append").save(str(path))
    assert ts.open(path).version == 2, "nothing is appended"
    with pytest.raises(Exception, match="there are no fragments"):
        frame.limit(0).write.format("tensilo").mode("append").save(str(tmp_path / "empty"))
    with pytest.raises(Exception, match="the dataset already exists"):
        frame.write.format("tensilo").mode("overwrite").save(str(path))


def test_a_frame_that_fails_leaves_no_version(spark, tmp_path):
    frame = spark.range(100).selectExpr("id", "raise_error('broken') as text")
    with pytest.raises(Exception, match="broken"):
        frame.write.format("tensilo").mode("append").save(str(tmp_path / "train"))
    assert not list(tmp_path.glob("train/manifest/*"))
