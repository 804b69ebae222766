"""Arrow in both directions, and equality of all ways of reading."""

import errno
import os
import subprocess
import sys
import tempfile

import numpy as np
import pytest
from arbitrary import same, tables
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tensilo as ts
from conftest import SCHEMA, optional

pa = optional("pyarrow")
pq = optional("pyarrow.parquet")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables(), st.sampled_from(["balanced", "fast", "raw"]))
def test_every_way_of_reading_gives_the_same(table, profile):
    with tempfile.TemporaryDirectory() as folder:
        dataset = ts.convert(table, f"{folder}/x.tsl", profile=profile)
        expected = {name: table[name].to_pylist() for name in table.column_names}
        back = pa.RecordBatchReader.from_stream(dataset).read_all()
        batch = dataset[:]
        as_arrow = pa.table(batch)
        for name, samples in expected.items():
            column = batch[name]
            ways = [column.tolist(), back[name].to_pylist(), as_arrow[name].to_pylist(), pa.array(column).to_pylist()]
            ways.append([one if not isinstance(one, ts.Array) else one.tolist() for one in dataset[name]])
            ways.append(dataset[::-1][name].tolist()[::-1])
            for way in ways:
                assert same(way, samples), (name, way, samples)
            assert column.null_count == samples.count(None)
            if column.is_tensor and column.null_count == 0:
                raw = column.array().tobytes()
                assert np.asarray(column).tobytes() == raw == np.from_dlpack(column).tobytes()
        assert same(
            [table.schema.field(name).type for name in expected], [back.schema.field(name).type for name in expected]
        )


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(tables())
def test_a_writer_takes_what_a_batch_has(table):
    with tempfile.TemporaryDirectory() as folder:
        dataset = ts.convert(table, f"{folder}/x.tsl")
        samples = {name: dataset[:][name].tolist() for name in dataset.columns}
        with ts.Writer(f"{folder}/lists.tsl", dataset.schema) as writer:
            writer.write(**samples)
        with ts.Writer(f"{folder}/batch.tsl", dataset.schema) as writer:
            writer.write(**dataset[:])
        for path in ("lists.tsl", "batch.tsl"):
            again = ts.open(f"{folder}/{path}")
            assert all(same(again[:][name].tolist(), samples[name]) for name in samples)


def test_values_are_not_copied(mixed):
    batch = mixed.take(range(100), columns=["mel", "label"])
    address = np.asarray(batch["label"]).ctypes.data
    assert pa.array(batch["label"]).buffers()[1].address == address
    values = np.asarray(batch["mel"].ragged()[0]).ctypes.data
    assert pa.table(batch)["mel"].chunk(0).values.values.buffers()[1].address == values


def test_arrays_of_arrow_outlive_the_batch(mixed):
    arrays = [pa.array(mixed.take([i])["label"]) for i in range(50)]
    tables = [pa.table(mixed.take([i])) for i in range(50)]
    assert [array.to_pylist() for array in arrays] == [[i] for i in range(50)]
    assert [table["label"].to_pylist() for table in tables] == [[i] for i in range(50)]


def test_a_stream_that_is_given_up_ends(mixed):
    for _ in range(20):
        stream = pa.RecordBatchReader.from_stream(mixed)
        stream.read_next_batch()
        del stream
    mixed.__arrow_c_stream__()


def test_types_that_numbers_stand_for_come_back(tmp_path):
    import datetime
    import decimal

    now = datetime.datetime(2026, 11, 24, 12, 0, 1, 5)
    table = pa.table(
        {
            "time": pa.array([now, None], pa.timestamp("us")),
            "day": pa.array([now.date(), None], pa.date32()),
            "price": pa.array([decimal.Decimal("1.25"), None], pa.decimal128(9, 2)),
            "kind": pa.array(["a", "b"]).dictionary_encode(),
        }
    )
    with pytest.warns(UserWarning, match="price"):
        dataset = ts.convert(table, tmp_path / "x.tsl")
    assert pa.RecordBatchReader.from_stream(dataset).read_all().cast(table.schema).equals(table)
    for name in ("time", "day", "price"):
        assert pa.table(dataset[:])[name].to_pylist() == table[name].to_pylist()


def test_frames_of_other_libraries_go_in_and_out(mixed, tmp_path):
    polars = optional("polars")
    frame = polars.DataFrame({"x": [1, 2, 3], "s": ["a", None, "c"], "l": [[1.0], [], [2.0, 3.0]]})
    dataset = ts.convert(frame, tmp_path / "p.tsl")
    again = polars.DataFrame(dataset[:])
    assert again.to_dict(as_series=False) == frame.to_dict(as_series=False)
    assert polars.DataFrame(dataset).shape == (3, 3)
    duckdb = optional("duckdb")
    stream = pa.RecordBatchReader.from_stream(mixed)  # noqa: F841  DuckDB finds it by its name
    assert duckdb.sql("select sum(label) from stream").fetchall() == [(sum(range(len(mixed))),)]
    relation = duckdb.sql("select 5 as x union all select 6")
    assert sorted(row["x"] for row in ts.convert(relation, tmp_path / "d.tsl")) == [5, 6]
    pandas = optional("pandas")
    frame = pandas.DataFrame({"x": [1.5, 2.5]})
    assert [row["x"] for row in ts.convert(frame, tmp_path / "q.tsl")] == [1.5, 2.5]
    assert list(pandas.DataFrame.from_arrow(dataset[:])["x"]) == [1, 2, 3]
    with pytest.raises(TypeError, match="from_arrow"):
        pandas.DataFrame(dataset[:])
    with pytest.raises(TypeError, match="from_iterable"):
        ts.convert({"x": [1, 2]}, tmp_path / "r.tsl")


def test_bad_streams_are_exceptions(tmp_path):
    class Bad:
        def __arrow_c_stream__(self, requested_schema=None):
            return self.given

    for given_, error in ((None, TypeError), (5, TypeError)):
        bad = Bad()
        bad.given = given_
        with pytest.raises(error):
            ts.convert(bad, tmp_path / "x.tsl")
    assert not (tmp_path / "x.tsl").exists()
    assert SCHEMA


def test_dates_and_times_keep_their_types(tmp_path):
    import datetime

    types = [pa.date32(), pa.time32("ms"), pa.time64("us"), pa.timestamp("us", tz="UTC"), pa.duration("ms")]
    values = [datetime.date(2026, 11, 24), datetime.time(1, 2, 3), datetime.time(4, 5, 6), None, datetime.timedelta(1)]
    values[3] = datetime.datetime(2026, 11, 24, tzinfo=datetime.UTC)
    table = pa.table(
        {f"c{i}": pa.array([value], type) for i, (type, value) in enumerate(zip(types, values, strict=True))}
    )
    dataset = ts.convert(table, tmp_path / "x.tsl")
    assert pa.table(dataset[:]).to_pylist() == table.to_pylist()
    assert pa.table(dataset[:]).schema.types == types


LIMITED = """
import resource, sys
import pyarrow as pa
import tensilo as ts

# writing beyond this size fails, as on a full disk
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
table = pa.table({"x": pa.array([7.0] * (1 << 18))})
ts.convert(table[:1000], "target.tsl")
for number, source in enumerate([table, table.to_batches()[0], ts.convert(table, "table.tsl")[:]]):
    assert len(ts.convert(source, f"{number}.tsl")) == 1 << 18
    assert ts.append("target.tsl", source) == 1 << 18
for call in (lambda inputs: ts.convert(inputs, "stream.tsl"), lambda inputs: ts.append("target.tsl", inputs)):
    try:
        call(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
    except OSError as error:
        print(error.errno, error.filename, error.strerror)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="files have no limit there")
def test_a_table_is_not_copied_and_a_full_disk_is_an_os_error(tmp_path):
    done = subprocess.run([sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 2, done.stdout
    for line in lines:
        assert line.startswith(f"{errno.EFBIG} . ") and "copying the Arrow stream" in line
    assert sorted(os.listdir(tmp_path)) == ["0.tsl", "1.tsl", "2.tsl", "table.tsl", "target.tsl"]


def test_a_stream_is_copied_to_a_file_without_a_name(tmp_path):
    found = []

    def batches():
        for i in range(3):
            found.extend(os.listdir(tmp_path))
            yield pa.record_batch({"x": [i, i]})

    schema = pa.schema({"x": pa.int64()})
    dataset = ts.convert(pa.RecordBatchReader.from_batches(schema, batches()), tmp_path / "x.tsl")
    assert dataset["x"][:].tolist() == [0, 0, 1, 1, 2, 2] and found == []
    assert ts.append(tmp_path / "x.tsl", pa.RecordBatchReader.from_batches(schema, batches())) == 6
    assert found == ["x.tsl"] * 3
    # neither the folder nor its parent exists yet
    stream = pa.RecordBatchReader.from_batches(schema, iter([pa.record_batch({"x": [1]})]))
    assert len(ts.convert(stream, tmp_path / "new/er", shard_bytes=64)) == 1


def test_a_table_gives_the_same_samples_as_its_file(tmp_path):
    words = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["c", "b", None]).dictionary_encode()]
    table = pa.table(
        {
            "word": pa.chunked_array(words),  # each chunk has its own dictionary
            "list": pa.array([[1], [2, 3], None, [], [4]], pa.list_(pa.int16())),
            "struct": pa.array([{"a": 1}, None, {"a": 2}, {"a": None}, {"a": 5}]),
            "time": pa.array(range(5), pa.timestamp("us", "UTC")),
        }
    )
    with pa.ipc.new_stream(tmp_path / "in.arrow", table.schema) as sink:
        sink.write_table(table)
    sources = [tmp_path / "in.arrow", table, pa.RecordBatchReader.from_batches(table.schema, table.to_batches())]
    made = [ts.convert(source, tmp_path / f"{number}.tsl") for number, source in enumerate(sources)]
    for dataset in made:
        assert dataset.schema == made[0].schema
        found = pa.table(dataset)
        assert found.schema == table.schema and found.to_pylist() == table.to_pylist()
    assert made[0].id == made[2].id
    # the id of a table depends on its samples
    other = ts.convert(table.set_column(3, "time", table["time"][::-1]), tmp_path / "other.tsl")
    assert other.id != made[1].id and ts.convert(table, tmp_path / "again.tsl").id == made[1].id


def test_the_id_of_a_table_depends_on_its_rows_only(tmp_path):
    """Views and dictionaries may hold much more than their rows use; finding the id must not copy it."""

    def rows(others):
        long = [
            f"{others if i not in range(5000, 5003) else 'text'} {i} that is too long for its view" for i in range(9000)
        ]
        texts, words = pa.array(long, pa.string_view()), pa.array(long).dictionary_encode()
        structs = pa.StructArray.from_arrays([texts, words], ["text", "word"])
        lists = pa.ListArray.from_arrays(range(9001), texts)
        columns = {
            "text": texts,
            "bytes": texts.cast(pa.binary_view()),
            "word": words,
            "struct": structs,
            "list": lists,
        }
        return pa.table(columns).slice(5000, 3)

    tables = rows("some"), rows("other")
    assert tables[0].to_pylist() == tables[1].to_pylist() and tables[0].nbytes > 1 << 20
    ids = [ts.convert(table, tmp_path / f"{i}.tsl").id for i, table in enumerate(tables)]
    assert ids[0] == ids[1]


def test_errors_name_the_table(tmp_path):
    table = pa.table({"a": [1]})
    ts.convert(pa.table({"b": [1]}), tmp_path / "x.tsl")
    stream = pa.RecordBatchReader.from_batches(table.schema, table.to_batches())
    for source, name in ((table, "<pyarrow.Table>"), (stream, "<pyarrow.RecordBatchReader>")):
        with pytest.raises(ts.InputError, match=rf'^{name}: .*column "a" is not in the file') as caught:
            ts.append(tmp_path / "x.tsl", source)
        assert caught.value.path == name
    text = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\2\0\0\0"), pa.py_buffer(b"\xff\xfe")])
    with pytest.raises(ValueError, match="^<pyarrow.Table>: Invalid UTF8"):
        ts.convert(pa.table({"t": text}), tmp_path / "y.tsl")
    assert os.listdir(tmp_path) == ["x.tsl"]


def test_false_statistics_can_be_ignored(tmp_path):
    rows = [None if i % 40 == 3 else {"a": i, "b": -i} for i in range(1000)]
    path = tmp_path / "x.parquet"
    pq.write_table(pa.table({"pair": rows}), path, use_dictionary=False, compression="none")
    before = path.read_bytes()
    start = len(before) - 8 - int.from_bytes(before[-8:-4], "little")
    footer = before[start:]
    # the null count of each field, 25 as a zigzag integer
    assert footer.count(b"\x16\x32") == 2
    path.write_bytes(before[:start] + footer.replace(b"\x16\x32", b"\x16\x00"))
    with pytest.raises(ts.InputError, match="ignore_statistics=True"):
        ts.convert(path, tmp_path / "train", shard_bytes="1GiB")
    converted = ts.convert(path, tmp_path / "train", shard_bytes="1GiB", ignore_statistics=True)
    assert pa.table(converted)["pair"].to_pylist() == rows
