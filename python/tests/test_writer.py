"""Writers, conversions, and what they leave behind."""

import os

import numpy as np
import pytest

import tensilo as ts
from conftest import ROOT, SCHEMA, assert_is_sample, columns, forks, sample


def test_a_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "x.tsl"
    with ts.Writer(path, SCHEMA) as writer:
        writer.write(**columns([sample(i) for i in range(20)]))
        assert not path.exists()
        writer.write(**columns([sample(20)]))
    dataset = ts.open(path)
    assert len(dataset) == 21
    for i, row in enumerate(dataset):
        assert_is_sample(row, i)
    assert os.listdir(tmp_path) == ["x.tsl"]


def raw_columns(path):
    columns = ts.inspect(path)["columns"]
    return [column["name"] for column in columns if all(name.startswith("raw") for name in column["encodings"])]


def test_columns_have_profiles_of_their_own(tmp_path):
    schema = {name: ts.tensor("f32", (64,)) for name in "ab"}
    values = np.random.default_rng(7).normal(size=(1000, 64)).astype(np.float32)
    with ts.Writer(tmp_path / "x.tsl", schema, profile={"b": "raw"}) as writer:
        writer.write(a=values, b=values)
    assert raw_columns(tmp_path / "x.tsl") == ["b"]
    ts.convert(tmp_path / "x.tsl", tmp_path / "y.tsl", profile={"a": "raw", "b": "small"})
    assert raw_columns(tmp_path / "y.tsl") == ["a"]
    with pytest.raises(ValueError, match='unknown profile "tiny"'):
        ts.Writer(tmp_path / "z.tsl", schema, profile={"a": "tiny"})
    with pytest.raises(ValueError, match='there is no column "c"'):
        ts.Writer(tmp_path / "z.tsl", schema, profile={"c": "fast"})


@pytest.mark.parametrize("target", ["x.tsl", "x/"])
def test_nothing_is_left_of_what_failed(tmp_path, target):
    with pytest.raises(ZeroDivisionError):
        with ts.Writer(f"{tmp_path}/{target}", SCHEMA) as writer:
            writer.write(**columns([sample(1)]))
            raise ZeroDivisionError
    with pytest.raises(ValueError, match="closed"):
        writer.write(**columns([sample(1)]))
    assert not [name for _, _, names in os.walk(tmp_path) for name in names]


def test_a_file_that_is_there_stays(tmp_path):
    path = tmp_path / "x.tsl"
    path.write_text("mine")
    with pytest.raises(
        FileExistsError, match="x.tsl: creating the file: the file exists; remove it or pass overwrite=True$"
    ):
        ts.Writer(path, {"x": ts.tensor("f32")})
    assert path.read_text() == "mine"
    with ts.Writer(path, {"x": ts.tensor("f32")}, overwrite=True) as writer:
        writer.write(x=[1.5])
    assert ts.open(path)["x"][0] == 1.5


def test_a_dataset_gets_a_version_with_each_writer(tmp_path):
    folder = tmp_path / "set"
    for count in (1, 2):
        with ts.Writer(f"{folder}/", {"x": ts.tensor("i32")}, shard_bytes="1MiB") as writer:
            writer.write(x=np.arange(3, dtype=np.int32))
        assert ts.open(folder).version == count and len(ts.open(folder)) == 3 * count
    assert len(ts.open(folder, version=1)) == 3
    for schema in ({"y": ts.tensor("i32")}, {"x": ts.tensor("i64")}, {}):
        with pytest.raises(ValueError, match="existing dataset"):
            ts.Writer(folder, schema)


def test_a_writer_that_failed_can_be_repeated(tmp_path):
    folder = tmp_path / "set"
    schema = {"x": ts.tensor("f32")}
    with pytest.raises(ZeroDivisionError), ts.Writer(f"{folder}/", schema) as writer:
        writer.write(x=[1.5])
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="no samples"), ts.Writer(f"{folder}/", schema):
        pass
    with ts.Writer(f"{folder}/", schema) as writer:
        writer.write(x=[2.5])
    assert ts.open(folder)["x"][0] == 2.5
    with pytest.raises(ValueError, match="overwrite=True"):
        ts.Writer(folder, schema, overwrite=True)
    with pytest.raises(FileExistsError):
        ts.convert(ROOT / "tests/data/speech.parquet", folder)


def test_a_file_may_have_no_samples(tmp_path):
    with ts.Writer(tmp_path / "x.tsl", SCHEMA):
        pass
    dataset = ts.open(tmp_path / "x.tsl")
    assert len(dataset) == 0 and dataset.columns == list(SCHEMA) and list(dataset) == []
    assert dataset[:]["emb"].shape == (0, 8) and dataset[:]["mel"].padded().shape == (0, 0, 3)
    with pytest.raises(IndexError):
        dataset[0]
    with pytest.raises(ValueError):
        ts.Loader(dataset, 1)


def test_arrays_of_any_library_are_taken(tmp_path):
    path = tmp_path / "x.tsl"
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    with ts.Writer(path, {"x": ts.tensor("f32", (3,)), "y": ts.tensor("f32", (None,))}) as writer:
        writer.write(x=x[:, ::2], y=x)  # not contiguous, and of one length
        writer.write(x=memoryview(x[:2, :3].copy()), y=[x[0], x[1][:2]])
        writer.write(x=x[:1, :3], y=[[1, 2.5]])
    dataset = ts.open(path)
    np.testing.assert_array_equal(dataset[:4]["x"].numpy(), x[:, ::2])
    assert [len(row["y"]) for row in dataset] == [6, 6, 6, 6, 6, 2, 2]
    again = tmp_path / "again.tsl"
    with ts.Writer(again, dataset.schema) as writer:
        batch = dataset[:]
        writer.write(**batch)
    assert ts.open(again)[:]["y"].tolist() == batch["y"].tolist()


def test_bf16_is_taken_and_rounded(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    schema = {"a": ts.tensor("bf16", (2,)), "b": ts.tensor("bf16", (2,), cast_from="f32")}
    values = np.array([[1.0, 3.14159]], dtype=np.float32)
    with ts.Writer(tmp_path / "x.tsl", schema) as writer:
        writer.write(a=values.astype(ml_dtypes.bfloat16), b=values)
    batch = ts.open(tmp_path / "x.tsl")[:]
    assert batch["a"].array().tobytes() == batch["b"].array().tobytes() == values.astype(ml_dtypes.bfloat16).tobytes()


@pytest.mark.parametrize("sample", [[3, [1]], [[1], 3], [3, []], [[1, 2], [3, [4]]]])
def test_lists_of_different_depths_are_refused(tmp_path, sample):
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("f32", (None, None))}) as writer:
        with pytest.raises(ValueError, match="lists of different depths"):
            writer.write(x=[sample])
        writer.write(x=[[[1], [2]]])


@pytest.mark.parametrize(
    ("samples", "error", "words"),
    [
        ({"x": np.zeros((2, 3))}, TypeError, "f64.*f32"),
        ({"x": np.zeros((2, 4), dtype=np.float32)}, ValueError, "shape"),
        ({"x": np.float32(1)}, (TypeError, ValueError), "x"),
        ({"x": [[1, 2]]}, ValueError, "shape"),
        ({"x": [[1, 2, "3"]]}, TypeError, "'3'"),
        ({"x": [[1, 2, [3]]]}, (TypeError, ValueError), "x"),
        ({"x": [None]}, ValueError, "null"),
        ({"x": [[1, 2, 10**400]]}, TypeError, "f32"),
        ({"x": [[1, 2, 2**60 + 1]]}, TypeError, "f32"),
        ({"x": [[1, 2, 1e300]]}, TypeError, "sample 0.*f32"),
        ({"x": np.zeros((1, 3), dtype=">f4")}, TypeError, "x"),
        ({"x": np.zeros((1, 3), dtype="datetime64[s]")}, TypeError, "x"),
        ({"x": np.ma.masked_array(np.zeros((1, 3), dtype="f4"), mask=True)}, TypeError, "masked"),
        ({"x": "abc"}, TypeError, "list"),
        ({"x": 5}, TypeError, "int"),
        ({"x": [[1, 2, 3]], "t": ["a", "b"]}, ValueError, "x 1.*t 2"),
        ({"x": [[1, 2, 3]], "t": [b"a"]}, TypeError, "str"),
        ({"x": [[1, 2, 3]], "t": [3]}, TypeError, "str"),
        ({"x": [[1, 2, 3]], "z": [3]}, KeyError, "z"),
        ({}, TypeError, "missing"),
    ],
    ids=str,
)
def test_samples_that_do_not_fit_are_refused(tmp_path, samples, error, words):
    schema = {"x": ts.tensor("f32", (3,)), "t": ts.utf8()}
    with ts.Writer(tmp_path / "x.tsl", schema) as writer:
        writer.write(x=[[1, 2, 3]], t=["before"])
        with pytest.raises(error, match=words):
            writer.write(**{"t": ["a"], **samples} if samples else {})
        writer.write(x=[[4, 5, 6]], t=["after"])
    assert ts.open(tmp_path / "x.tsl")[:]["t"].tolist() == ["before", "after"]


@pytest.mark.parametrize(
    ("make", "error"),
    [
        (lambda: ts.tensor("f31"), ValueError),
        (lambda: ts.tensor("utf8"), ValueError),
        (lambda: ts.tensor("f32", (-1,)), ValueError),
        (lambda: ts.tensor("f32", -1), ValueError),
        (lambda: ts.tensor("f32", "3"), TypeError),
        (lambda: ts.list_("f32"), TypeError),
        (lambda: ts.Writer("x.tsl", {"x": "f32"}), TypeError),
        (lambda: ts.Writer("x.tsl", []), TypeError),
        (lambda: ts.Writer("x.tsl", {"x": ts.utf8()}, profile="tiny"), ValueError),
        (lambda: ts.Writer("x.tsl", {"x": ts.utf8()}, threads=0), ValueError),
        (lambda: ts.Writer("x.tsl", {"x": ts.utf8()}, threads="many"), ValueError),
        (lambda: ts.Writer("x/", {"x": ts.utf8()}, shard_bytes="lots"), ValueError),
        (lambda: ts.Writer("x.tsl", {"x": ts.tensor("f32", cast_from="bool")}), ValueError),
        (lambda: ts.Writer("no/such/folder/x.tsl", {"x": ts.utf8()}), FileNotFoundError),
    ],
)
def test_bad_arguments_are_exceptions(tmp_path, monkeypatch, make, error):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error):
        make()
    assert not os.listdir(tmp_path)


def test_conversion_gives_a_dataset(speech, tmp_path):
    assert len(speech) > 0
    copy = ts.convert(speech.uri, tmp_path / "copy.tsl", profile="fast")
    assert copy.columns == speech.columns
    for name in copy.columns:
        assert copy[:][name].tolist() == speech[:][name].tolist()
    folder = ts.convert(ROOT / "tests/data/speech.parquet", tmp_path / "set", bf16=True, shard_bytes="100KiB")
    assert folder.version == 1 and folder[:]["mel"].tolist() == speech[:]["mel"].tolist()
    calls = []
    ts.convert(speech.uri, tmp_path / "told.tsl", progress=lambda *at: calls.append(at))
    assert all(phase and done >= 0 for phase, done, _ in calls)
    with pytest.raises(FileExistsError):
        ts.convert(speech.uri, tmp_path / "copy.tsl")
    with pytest.raises(FileNotFoundError):
        ts.convert(tmp_path / "nothing.parquet", tmp_path / "y.tsl")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 and nothing else PAR1")
    with pytest.raises((ts.InputError, ValueError), match="bad.parquet"):
        ts.convert(tmp_path / "bad.parquet", tmp_path / "y.tsl")
    assert not (tmp_path / "y.tsl").exists()


def test_an_exception_of_the_progress_ends_the_work(speech, tmp_path):
    class Enough(Exception):
        pass

    def show(*_):
        raise Enough

    inputs = [speech.uri] * 300
    with pytest.raises(Enough):
        ts.convert(inputs, tmp_path / "x.tsl", profile="small", progress=show)
    assert not os.listdir(tmp_path)


def test_rows_and_columns_are_added(tmp_path):
    folder = tmp_path / "set"
    with ts.Writer(f"{folder}/", {"x": ts.tensor("i32")}) as writer:
        writer.write(x=[1, 2, 3])
    with ts.Writer(folder / "new.tsl", {"y": ts.utf8()}) as writer:
        writer.write(y=["a", "b", "c"])
    ts.add_columns(folder, folder / "new.tsl")
    dataset = ts.open(folder)
    assert dataset.columns == ["x", "y"] and dataset[2] == {"x": 3, "y": "c"}
    assert dataset.versions() == [1, 2] and ts.open(folder, version=1).columns == ["x"]
    with pytest.raises(ValueError):
        ts.add_columns(folder, folder / "new.tsl")


def test_a_file_of_a_dataset_is_verified_as_the_manifest_lists_it(tmp_path):
    with ts.Writer(f"{tmp_path}/set/", {"x": ts.tensor("i32")}) as writer:
        writer.write(x=[1, 2, 3])
    (path,) = tmp_path.glob("set/data/*/*.tsl")
    listed = path.stat().st_size
    with open(path, "ab") as file:
        file.write(b"of a later commit")
    report = ts.verify(tmp_path / "set")
    assert report.ok and report.files[0]["file_bytes"] == listed


def test_damage_is_found_and_saved_from(mixed_path, tmp_path):
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"x": ts.tensor("f32", (64,))}, profile="raw") as writer:
        writer.write(x=np.zeros((2000, 64), dtype=np.float32))
    assert ts.verify(path) and ts.verify(path, deep=True).ok and ts.verify(mixed_path)
    ts.verify(path).raise_if_damaged()
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    report = ts.verify(path)
    assert not report and len(report.findings) == 1 and report.findings[0]["column"] == "x"
    assert (report.state, report.findings[0]["kind"]) == ("damaged", "damaged")
    with pytest.raises(ts.CorruptionError) as caught:
        report.raise_if_damaged()
    start, end = caught.value.samples
    assert caught.value.column == "x" and caught.value.path == str(path) and start < end
    with pytest.raises(ts.CorruptionError) as caught:
        ts.open(path)[start]
    assert caught.value.samples and caught.value.rule and "salvage" in caught.value.__notes__[0]
    losses = ts.salvage(path, tmp_path / "intact.tsl")
    assert losses["schema"].startswith("tensilo.salvage")
    intact = ts.open(tmp_path / "intact.tsl")
    assert len(intact) == 2000 and intact[start]["x"] is None and intact[0]["x"] is not None
    with pytest.raises(FileNotFoundError):
        ts.verify(tmp_path / "nothing.tsl")


def test_files_are_inspected_and_drawn(speech):
    facts = ts.inspect(speech.uri)
    assert facts["sample_count"] == len(speech)
    drawing = ts.draw_layout(speech.uri)
    assert str(drawing).startswith("<svg") and drawing._repr_svg_() == str(drawing) and "SVG" in repr(drawing)
    with pytest.raises(FileNotFoundError):
        ts.inspect("nothing.tsl")


@pytest.mark.parametrize("target", ["x.tsl", "x/"])
def test_samples_that_are_refused_lose_no_others(tmp_path, target):
    schema = {"x": ts.tensor("i64"), "b": ts.tensor("bool")}
    path = f"{tmp_path}/{target}"
    with ts.Writer(path, schema) as writer:
        writer.write(x=[1, 2, 3], b=[True] * 3)
        with pytest.raises(ValueError):
            writer.write(x=[4, None], b=[True, False])
        with pytest.raises(ValueError):
            writer.write(x=[4, 5], b=np.array([7, 0], dtype=np.uint8))
        writer.write(x=[6], b=[False])
    assert ts.open(path)[:]["x"].tolist() == [1, 2, 3, 6]


def test_lists_are_lists(tmp_path):
    endless = []
    endless.append(endless)
    schema = {"x": ts.tensor("f32", (None,)), "l": ts.list_(ts.utf8())}
    with ts.Writer(tmp_path / "x.tsl", schema) as writer:
        for x, words in (
            ([endless], [[]]),
            ([{1: 2}], [[]]),
            ([[1]], ["abc"]),
            ([[1]], [{"a": 1}]),
            ({1: 2}, [[]]),
            ([[1]], {"a"}),
        ):
            with pytest.raises((TypeError, ValueError)):
                writer.write(x=x, l=words)
        writer.write(x=[[1]], l=[["abc"]])
    assert ts.open(tmp_path / "x.tsl")[0]["l"] == ["abc"]


@forks
@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_writer_belongs_to_its_process(tmp_path):
    with ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("i64")}, threads=1) as writer:
        writer.write(x=[1, 2])
        child = os.fork()
        if child == 0:
            try:
                writer.write(x=[3])
            except ValueError:
                del writer
                os._exit(7)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        writer.write(x=[4])
    assert ts.open(tmp_path / "x.tsl")[:]["x"].tolist() == [1, 2, 4]


def test_what_a_program_would_print_are_values_and_exceptions(tmp_path):
    folder = tmp_path / "set"
    schema = {"x": ts.tensor("f32", (64,), cast_from="f64"), "t": ts.utf8(nullable=True)}
    with ts.Writer(f"{folder}/", schema, profile="raw", metadata={"a": "b"}) as writer:
        writer.write(x=np.full((500, 64), 0.1), t=["é", None] * 250)
    (path,) = folder.rglob("*.tsl")
    facts = ts.inspect(path)
    assert facts["metadata"] == {"a": "b"} and facts["finished"] is True and isinstance(facts["file_bytes"], int)
    x, t = facts["columns"]
    assert x["shape"] == [64] and t["shape"] == [None] and x["cast"]["max_abs_error"] > 0 and t["cast"] is None
    assert ts.inspect(folder)["columns"][1]["null_count"] == t["null_count"] == 250
    assert "or lost" not in str(ts.draw_layout(path, verify=True)) and "ratio" in str(ts.draw_layout(folder))
    for error, wrong in (
        (ValueError, lambda: ts.draw_layout(path, width=100)),
        (ValueError, lambda: ts.draw_layout(path, width=-1)),
        (ValueError, lambda: ts.draw_layout(folder, verify=True)),
        (TypeError, lambda: ts.inspect(7)),
        (FileNotFoundError, lambda: ts.salvage(tmp_path / "nothing.tsl", tmp_path / "y.tsl")),
        (FileNotFoundError, lambda: ts.draw_layout(tmp_path / "nothing.tsl", verify=True)),
    ):
        with pytest.raises(error):
            wrong()
    whole = ts.salvage(path, tmp_path / "whole.tsl")
    assert whole["ok"] is True and whole["output"]["sample_count"] == 500
    data = bytearray(path.read_bytes())
    data[0] ^= 1
    path.write_bytes(data)
    for damaged in (ts.inspect, ts.draw_layout):
        with pytest.raises(ts.CorruptionError) as caught:
            damaged(path)
        assert caught.value.path == str(path) and caught.value.rule and "salvage" in caught.value.__notes__[0]
    assert "structure, or lost" in str(ts.draw_layout(path, verify=True))
    losses = ts.salvage(folder, tmp_path / "rest")
    assert losses["schema"] == "tensilo.salvage-dataset/1" and len(ts.open(tmp_path / "rest")) == 500


def test_a_name_is_one_name(tmp_path):
    path = tmp_path / "x.tsl"
    with ts.Writer(path, {"l": ts.tensor("i64"), "ll": ts.tensor("i64")}) as writer:
        writer.write(l=[1], ll=[2])
    assert ts.convert(path, tmp_path / "y.tsl", skip="ll").columns == ["l"]
    assert ts.convert(path, tmp_path / "z.tsl", columns="ll").columns == ["ll"]
    renamed = ts.convert(path, tmp_path / "r.tsl", rename={"ll": "m", "l": "ll"})
    assert renamed.columns == ["ll", "m"] and renamed[0]["ll"] == 1


def test_metadata_that_are_left_out_are_a_warning(tmp_path):
    source = ROOT / "tests/data/import/metadata-not-utf8-pyarrow.parquet"
    with pytest.warns(UserWarning, match="some metadata was left out.*bin of a, k"):
        ts.convert(source, tmp_path / "x.tsl")


@pytest.mark.parametrize("found", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_widened_if_the_type_has_them(tmp_path, found):
    limits = np.iinfo(found)
    values = np.array([limits.min, limits.max, 1], dtype=found)
    for dtype in ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"):
        schema = {"x": ts.tensor(dtype), "y": ts.tensor(dtype, (None,))}
        fits = np.can_cast(found, dtype)
        try:
            with ts.Writer(tmp_path / f"{dtype}.tsl", schema) as writer:
                writer.write(x=values, y=[values, values[:1], None or values[2:]])
        except TypeError:
            assert not fits
            continue
        assert fits
        batch = ts.open(tmp_path / f"{dtype}.tsl")[:]
        assert batch["x"].tolist() == values.tolist()
        assert batch["y"].tolist() == [values.tolist(), values[:1].tolist(), [1]]


def test_what_is_given_up_leaves_nothing(tmp_path):
    for schema, error in [
        ({"x": ts.tensor("f32", (2,) * 9)}, ValueError),
        ({"x": ts.tensor("f32")}, ZeroDivisionError),
    ]:
        with pytest.raises(error):
            with ts.Writer(f"{tmp_path}/new/inner/", schema) as writer:
                writer.write(x=[1.0])
                _ = 1 / 0
    assert not list(tmp_path.iterdir())


def test_a_writer_that_is_forgotten_warns(tmp_path):
    with pytest.warns(ResourceWarning, match="close"):
        ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("f32")})
    assert not list(tmp_path.iterdir())


def test_samples_that_are_added_do_not_change_metadata(tmp_path):
    folder = f"{tmp_path}/set/"
    for metadata in ({"a": "b"}, {"a": "b"}, None):
        with ts.Writer(folder, {"x": ts.tensor("i64")}, metadata=metadata) as writer:
            writer.write(x=[1])
    with pytest.raises(ValueError, match="'?a'?"):
        ts.Writer(folder, {"x": ts.tensor("i64")}, metadata={"a": "c"})
    assert len(ts.open(folder)) == 3


def test_a_rescue_replaces_nothing(speech, tmp_path):
    (tmp_path / "there").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        ts.salvage(speech.uri, tmp_path / "there")
    assert (tmp_path / "there").read_bytes() == b"mine"


def test_an_error_of_a_writer_that_no_variable_holds(tmp_path):
    def writer():
        return ts.Writer(tmp_path / "x.tsl", {"x": ts.tensor("f32", (4,))})

    for error, samples in (
        (ValueError, {"x": np.zeros((2, 5), "f4")}),
        (TypeError, {"x": np.zeros((2, 4), "i8")}),
        (KeyError, {"y": 1}),
        (ZeroDivisionError, {"x": (1 / 0 for _ in range(2))}),
    ):
        with pytest.warns(ResourceWarning, match="without close"), pytest.raises(error):
            writer().write(**samples)
    assert os.listdir(tmp_path) == []


def test_a_dataset_takes_its_own_values(tmp_path):
    """A column that rounds also takes values that are rounded already."""
    kinds = [("bf16", "f32"), ("f16", "f32"), ("bf16", "f64"), ("f16", "f64"), ("f32", "f64")]
    schema = {f"{to} {source}": ts.tensor(to, (3,), cast_from=source) for to, source in kinds}
    schema["ragged"] = ts.tensor("bf16", (None,), nullable=True, cast_from="f32")
    with ts.Writer(tmp_path / "a.tsl", schema) as writer:
        odd = np.array([[1.1, -0.0, np.inf], [np.nan, 3e-8, -65504]])
        values = {name: odd.astype({"f32": "f4", "f64": "f8"}[name.split()[1]]) for name in schema if " " in name}
        writer.write(**values, ragged=[None, np.array([1.1], "f4")])
    first = ts.open(tmp_path / "a.tsl")
    with ts.Writer(tmp_path / "b.tsl", dict(first.schema)) as writer:
        writer.write(**first[:])
    second = ts.open(tmp_path / "b.tsl")
    for name in schema:
        if " " in name:
            assert second[name][:].array().tobytes() == first[name][:].array().tobytes(), name
    assert second["ragged"][:].tolist() == first["ragged"][:].tolist()
    with pytest.warns(ResourceWarning):
        with pytest.raises(
            TypeError, match="elements of dtype f16 do not fit a column of bf16 rounded from f32: convert"
        ):
            ts.Writer(tmp_path / "c.tsl", schema).write(**{**dict(first[:]), "bf16 f32": np.zeros((2, 3), "f2")})


def test_a_malformed_time_is_an_error_before_the_work(tmp_path, monkeypatch):
    """After the work, the data would be lost."""
    np.save(tmp_path / "x.npy", np.arange(5))
    ts.convert(tmp_path / "x.npy", f"{tmp_path}/there/")
    calls = []
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    for work in (
        lambda: ts.convert(tmp_path / "x.npy", f"{tmp_path}/new/", progress=lambda *now: calls.append(now)),
        lambda: ts.append(tmp_path / "there", tmp_path / "none.npy"),
        lambda: ts.add_columns(tmp_path / "there", tmp_path / "x.npy"),
        lambda: ts.Writer(f"{tmp_path}/new/", SCHEMA),
    ):
        with pytest.raises(ValueError, match='SOURCE_DATE_EPOCH="yesterday": expected a number'):
            work()
    assert calls == [] and not (tmp_path / "new").exists()
    assert len(ts.open(tmp_path / "there")) == 5
