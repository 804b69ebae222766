"""Dicts from any iterable: each test creates small data and compares it bit for bit."""

import json
import os
import struct

import numpy as np
import pytest

import tensilo as ts
from imported import BF16, ODD_BF16, ODD_F32, bits, failing, files
from tensilo import importers
from tensilo.importers import _samples


def test_arrays_texts_and_numbers_come_back(tmp_path):
    torch = pytest.importorskip("torch")
    bf16 = torch.from_numpy(ODD_BF16.view(np.int16)).view(torch.bfloat16)
    rows = [
        {
            "mel": np.tile(ODD_F32, (i + 1, 1)),
            "bf16": bf16,
            "numpy_bf16": ODD_BF16[::-1],
            "big_endian": np.arange(3, dtype=">i2") + i,
            "grad": torch.full((2,), float(i), requires_grad=True),
            "scalar": np.float16(i),
            "count": i,
            "large": 2**64 - 1 - i,
            "weight": i / 3 if i else 0,
            "flag": i % 2 == 0,
            "text": f"sample {i} ä",
            "name": np.str_("n"),
            "raw": bytearray(b"\0\xff" * i),
            "tokens": list(range(i)),
            "box": (1, 2, 3, 4),
            "words": ["a"] * i,
            "maybe": None if i == 1 else i,
        }
        for i in range(3)
    ]
    ds = importers.from_iterable(iter(rows), tmp_path / "out.tsl")
    assert ds.columns == list(rows[0])
    schema = ds.schema
    assert (schema["mel"].shape, schema["tokens"].shape, schema["box"].shape) == ((None, 4), (None,), (4,))
    dtypes = {name: column.dtype for name, column in schema.items()}
    assert [dtypes[name] for name in ("bf16", "numpy_bf16", "count", "large", "weight", "flag", "scalar")] == [
        "bf16",
        "bf16",
        "i64",
        "u64",
        "f64",
        "bool",
        "f16",
    ]
    assert [name for name, column in schema.items() if column.nullable] == ["maybe"]
    for row, found in zip(rows, ds, strict=True):
        assert bits(found["mel"]) == bits(row["mel"])
        assert bits(found["bf16"]) == bits(ODD_BF16)
        assert bits(found["numpy_bf16"]) == bits(row["numpy_bf16"])
        assert bits(found["big_endian"]) == bits(row["big_endian"].astype("=i2"))
        assert bits(found["grad"]) == bits(row["grad"].detach().numpy())
        assert found["tokens"].tolist() == row["tokens"]
        assert found["box"].tolist() == [1, 2, 3, 4]
        for name in ("scalar", "count", "large", "weight", "flag", "text", "name", "raw", "words", "maybe"):
            assert found[name] == row[name], name


def test_lists_are_tensors_only_if_they_are_rectangular(tmp_path):
    rows = [
        {
            "square": [[1, 2], [3, 4]],
            "jagged": [[1.0], [2, 3]],
            "holes": [1, None],
            "arrays": [np.zeros((1, 2))],
        },
        {"square": [[5, 6]], "jagged": [], "holes": [], "arrays": [np.ones((2, 2)), np.ones((0, 2))]},
        {"square": [], "jagged": [[]], "holes": [None], "arrays": []},
    ]
    ds = importers.from_iterable(rows, tmp_path / "out.tsl")
    found = {name: (column.dtype, column.shape, column.levels) for name, column in ds.schema.items()}
    assert found == {
        "square": ("i64", (None, 2), []),
        "jagged": ("f64", (None,), [False]),
        "holes": ("i64", (), [True]),
        "arrays": ("f64", (None, 2), [False]),
    }
    assert [row["holes"] for row in ds] == [[1, None], [], [None]]
    assert [[list(part.tolist()) for part in row["jagged"]] for row in ds] == [[[1.0], [2.0, 3.0]], [], [[]]]
    assert [row["square"].tolist() for row in ds] == [[[1, 2], [3, 4]], [[5, 6]], []]


def test_a_schema_rounds_and_others_are_found(tmp_path):
    rows = [{"x": np.linspace(0, 1, 5, dtype="f4"), "y": i} for i in range(4)]
    schema = {"x": ts.tensor("bf16", (None,), cast_from="f32")}
    ds = importers.from_iterable(rows, tmp_path / "out.tsl", schema)
    assert (ds.schema["x"].dtype, ds.schema["y"].dtype) == ("bf16", "i64")
    assert bits(ds[2]["x"]) == bits(rows[2]["x"].astype(BF16))
    again = importers.from_iterable(rows, tmp_path / "again.tsl", ds.schema)
    assert again.schema["x"] == ds.schema["x"]


def test_samples_of_a_dataset(tmp_path):
    rows = [{"x": np.tile(ODD_BF16, i), "y": i} for i in range(4)]
    ds = importers.from_iterable(rows, tmp_path / "out.tsl")
    again = importers.from_iterable(ds, tmp_path / "again.tsl", columns=["x"])
    assert [bits(row["x"]) for row in again] == [bits(row["x"]) for row in rows]


def test_samples_come_back_or_are_refused(tmp_path):
    """Arbitrary samples either come back unchanged, or their types are refused."""
    hypothesis = pytest.importorskip("hypothesis")
    st, arrays = hypothesis.strategies, pytest.importorskip("hypothesis.extra.numpy").arrays
    scalars = [
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.booleans(),
        st.text(max_size=3),
        st.binary(max_size=3),
    ]
    shapes = st.tuples(st.integers(0, 2), st.integers(0, 2))
    kinds = [
        *scalars,
        st.one_of(scalars),
        *(shapes.flatmap(lambda s, t=t: arrays(t, s)) for t in ("f2", ">i4", "?")),
    ]

    def nested(kind):
        return st.one_of(kind, st.lists(kind, max_size=3), st.lists(st.lists(kind, max_size=3), max_size=3))

    columns = st.sampled_from([*map(nested, kinds), *(nested(st.none() | kind) for kind in kinds)])

    @hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
    @hypothesis.given(columns.flatmap(lambda values: st.lists(values, min_size=1, max_size=4)))
    def check(values):
        try:
            ds = importers.from_iterable([{"x": value} for value in values], tmp_path / "x.tsl", overwrite=True)
        except ts.InputError as error:
            assert "from the first" in str(error) or "surrogates" in str(error)
            return
        for value, row in zip(values, ds, strict=True):
            assert is_same(value, row["x"])

    check()


def is_same(value, found):
    if isinstance(value, np.ndarray):
        return bits(value.astype(value.dtype.newbyteorder("="))) == bits(found)
    if isinstance(value, list):
        found = found.tolist() if isinstance(found, ts.Array) else found
        return len(value) == len(found) and all(map(is_same, value, found))
    if isinstance(value, float):
        return struct.pack("d", value) == struct.pack("d", found) or (value != value and found != found)
    return value == found


def test_columns_that_are_stored(tmp_path):
    rows = [{"a": 1, "b": 2}, {"b": 3, "c": 4}]
    ds = importers.from_iterable(rows, tmp_path / "some.tsl", columns=["b"])
    assert list(ds) == [{"b": 2}, {"b": 3}]
    rows_of_dots = [{"ab": 1, "ab.c": 2}]
    for name in ["ab", "ab.c"]:
        for columns in [name, [name]]:
            ds = importers.from_iterable(rows_of_dots, tmp_path / "one.tsl", columns=columns, overwrite=True)
            assert list(ds) == [{name: rows_of_dots[0][name]}]
    ds = importers.from_iterable(rows, tmp_path / "all.tsl")
    assert list(ds) == [{"a": 1, "b": 2, "c": None}, {"a": None, "b": 3, "c": 4}]
    with pytest.raises(ts.InputError, match="sample 1 has 'c', which the first samples do not"):
        importers.from_iterable(
            rows, tmp_path / "more.tsl", infer_samples=1, schema={"a": ts.tensor("i64", nullable=True)}
        )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.array([{}], object), "an object array"),
        (np.ma.masked_array(np.zeros(2), [0, 1]), "mask"),
        (np.zeros(2, "M8[s]"), "datetime64"),
        (object(), "object cannot be stored"),
    ],
)
def test_values_that_cannot_be_stored(tmp_path, value, message):
    with pytest.raises(TypeError, match=message) as caught:
        importers.from_iterable([{"x": 1}, {"x": value}], tmp_path / "out.tsl")
    assert caught.value.__notes__ == ["sample 1, column 'x'"]
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, "a"], "different types: int, str"),
        ([True, 1], "different types: bool, int"),
        ([2**53 + 1, 0.5], "integers that f64 cannot hold exactly"),
        ([np.zeros(2, "f4"), np.zeros(2, "f8")], "different types: float32, float64"),
        ([np.zeros((2, 2)), np.zeros(2)], "different ranks"),
        ([None, None], "no value"),
        ([[], []], "no value"),
        ([np.zeros(1, "c16")], "complex128"),
    ],
)
def test_samples_without_a_common_type(tmp_path, values, message):
    with pytest.raises(ts.InputError, match=message) as caught:
        importers.from_iterable([{"x": value} for value in values], tmp_path / "out.tsl")
    assert caught.value.column == "x"
    assert files(tmp_path) == []


def test_a_failing_sample_leaves_no_output(tmp_path):
    good = [{"x": np.zeros(3, "f4")}] * 3000
    with pytest.raises(RuntimeError, match="broken") as caught:
        importers.from_iterable(failing(good), tmp_path / "out.tsl")
    assert caught.value.__notes__ == ["sample 3000"]
    with pytest.raises(ts.InputError, match=r"sample 3000: column \"x\": sample shape \[4\]"):
        importers.from_iterable([*good, {"x": np.zeros(4, "f4")}], tmp_path / "out.tsl")
    with pytest.raises(ts.InputError, match=r"sample 3000: .*null"):
        importers.from_iterable([*good, {}], tmp_path / "out.tsl")
    assert os.listdir(tmp_path) == []
    with pytest.raises(RuntimeError, match="broken"):
        importers.from_iterable(failing(good), f"{tmp_path}/folder/", shard_bytes=4096)
    assert files(tmp_path) == []


def test_no_samples_and_outputs_that_are_there(tmp_path):
    with pytest.raises(ts.InputError, match="no samples"):
        importers.from_iterable([], tmp_path / "out.tsl")
    rows = [{"x": i} for i in range(10)]
    importers.from_iterable(rows, tmp_path / "out.tsl", metadata={"from": "test"}, profile="small")
    with pytest.raises(FileExistsError):
        importers.from_iterable(iter(rows), tmp_path / "out.tsl")
    ds = importers.from_iterable(rows[:3], tmp_path / "out.tsl", metadata={"from": "b"}, overwrite=True)
    assert (len(ds), ds.metadata["from"]) == (3, "b")
    ds = importers.from_iterable(rows, f"{tmp_path}/folder/")
    assert (len(ds), ds.version) == (10, 1)
    with pytest.raises(FileExistsError):
        importers.from_iterable(rows, f"{tmp_path}/folder/", overwrite=True)
    assert len(ts.open(tmp_path / "folder")) == 10


def test_batches_are_bounded(tmp_path, monkeypatch):
    """A generator is consumed only a little further than samples are written."""
    monkeypatch.setattr(_samples, "BATCH_BYTES", 40_000)
    monkeypatch.setattr(_samples, "_MAX_INFER_BYTES", 100_000)
    taken, max_buffered, calls = 0, 0, []

    def samples():
        nonlocal taken
        for i in range(500):
            taken += 1
            yield {"x": np.full(1000, i, "f4")}

    def progress(phase, done, total):
        nonlocal max_buffered
        max_buffered = max(max_buffered, taken - done)
        calls.append((phase, done, total))

    ds = importers.from_iterable(samples(), tmp_path / "out.tsl", progress=progress)
    assert max_buffered <= 25
    assert calls[0] == ("importing", 10, None)
    assert calls[-1] == ("importing", 500, None)
    assert np.array_equal(ds["x"].take(range(500)).numpy()[:, 0], np.arange(500))


def test_progress_that_raises_ends_the_work(tmp_path):
    def progress(phase, done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        importers.from_iterable([{"x": 1}], tmp_path / "out.tsl", progress=progress)
    assert os.listdir(tmp_path) == []


CHATS = [
    {
        "id": 1,
        "messages": [{"role": "user", "content": "hi"}, {"role": "bot", "content": "yo", "n": 3}],
        "target": {"box": [1.5, 2], "of": {"flag": True}},
        "empty": {},
        "a.b": {"words": ["x"], "pair": [1, 2]},
    },
    {"id": 2, "messages": [], "target": None, "empty": {}, "a.b": {"words": [], "pair": [3, 4]}},
    {"id": 3, "messages": None, "target": {"box": [2, 3], "of": None}, "empty": {}, "a.b": {"words": ["y", None]}},
]


def as_json_lines(rows, folder):
    """Converts the same rows from a JSON lines file with the CLI."""
    path = folder / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ts.convert(path, folder / "json.tsl", overwrite=True)


def assert_same(found, expected):
    """Asserts that two datasets have the same columns, types, positions in structs, and samples."""
    assert found.columns == expected.columns
    for name, column in found.schema.items():
        other = expected.schema[name]
        assert (column.dtype, column.shape, column.levels, column.nullable) == (
            other.dtype,
            other.shape,
            other.levels,
            other.nullable,
        ), name
        assert column.metadata.get("tensilo.path") == other.metadata.get("tensilo.path")
        assert found[name][:].tolist() == expected[name][:].tolist(), name


def test_dicts_are_the_structs_of_json_lines(tmp_path):
    ds = importers.from_iterable(iter(CHATS), tmp_path / "out.tsl")
    assert_same(ds, as_json_lines(CHATS, tmp_path))
    assert ds["messages.content"][0] == ["hi", "yo"] and ds["messages.n"][0][0] is None
    pa = pytest.importorskip("pyarrow")
    rows = pa.table(ds).to_pylist()
    assert rows[0]["messages"] == [CHATS[0]["messages"][0] | {"n": None}, CHATS[0]["messages"][1]]
    assert [row["target"] for row in rows] == [row["target"] for row in CHATS]


@pytest.mark.parametrize("inner", [{"a": 0}, {}, [{"a": 0}]])
def test_members_of_a_dict_that_is_none_are_not_none_themselves(tmp_path, inner):
    rows = [{"x": None}, {"x": {"a": inner}}, {"x": {"a": {"a": 1} if isinstance(inner, dict) else inner}}]
    assert_same(importers.from_iterable(rows, tmp_path / "x.tsl"), as_json_lines(rows, tmp_path))


def test_arbitrary_dicts_are_those_of_json_lines(tmp_path):
    hypothesis = pytest.importorskip("hypothesis")
    st = hypothesis.strategies
    kinds = st.sampled_from([st.integers(-9, 9), st.text(max_size=2), st.booleans(), st.floats(-1, 1)])

    def members(kind):
        keys = st.lists(st.sampled_from(["a", "b", "a.b", "c[", "\\"]), min_size=1, max_size=3, unique=True)
        values = keys.flatmap(lambda keys: st.fixed_dictionaries({}, optional=dict.fromkeys(keys, kind)))
        return st.one_of(values, values, st.none() | values)

    def lists(kind):
        return st.one_of(st.lists(kind, max_size=3), st.none() | st.lists(kind, max_size=3))

    nested = kinds.flatmap(
        lambda kind: st.sampled_from([kind, members(kind), lists(members(kind)), members(lists(kind))])
    )
    shapes = nested.flatmap(lambda kind: st.sampled_from([kind, members(kind), lists(kind), lists(members(kind))]))

    @hypothesis.settings(max_examples=300, deadline=None, derandomize=True)
    @hypothesis.given(shapes.flatmap(lambda kind: st.lists(kind, min_size=1, max_size=4)))
    def check(values):
        rows = [{"x": value} for value in values]
        try:
            ds = importers.from_iterable(rows, tmp_path / "x.tsl", overwrite=True)
        except ts.InputError as error:
            hypothesis.assume("same name" not in str(error) and "no value" not in str(error))
            raise
        assert_same(ds, as_json_lines(rows, tmp_path))

    check()


def test_arrays_and_schemas_inside_dicts(tmp_path):
    rows = [{"t": [{"box": np.full(4, i, "f4"), "mask": np.zeros((i, 2), bool)}] * i} for i in range(4)]
    schema = {"t.box": ts.list_(ts.tensor("bf16", (4,), cast_from="f32"))}
    ds = importers.from_iterable(rows, tmp_path / "out.tsl", schema)
    found = {name: (column.dtype, column.shape, column.levels) for name, column in ds.schema.items()}
    assert found == {"t.box": ("bf16", (4,), [False]), "t.mask": ("bool", (None, 2), [False])}
    assert [box.tolist() for box in ds["t.box"][3]] == [[3.0] * 4] * 3


@pytest.mark.parametrize("name", ["box.z", "box.of", "box.none.x", "list.z"])
def test_a_schema_for_members_that_no_sample_has(tmp_path, name):
    rows = [{"box": {"x": 1, "of": {"y": 2}}, "list": [{"x": 1}], "n": 1}, {"box": None, "list": [], "n": 2}]
    schema = {name: ts.tensor("f32", nullable=True), "m": ts.tensor("f32", nullable=True)}
    with pytest.raises(ts.InputError, match="the first samples have no values for it") as caught:
        importers.from_iterable(rows, tmp_path / "out.tsl", schema)
    assert caught.value.column == name
    assert files(tmp_path) == []
    assert importers.from_iterable(rows, tmp_path / "out.tsl", schema, columns=["n"]).columns == ["n"]


def test_members_of_dicts_that_are_stored(tmp_path):
    def stored(columns):
        return importers.from_iterable(CHATS, tmp_path / "out.tsl", columns=columns, overwrite=True).columns

    assert stored(["target", "id"]) == ["target", "target.box", "target.of", "target.of.flag", "id"]
    assert stored(["target.of.flag"]) == ["target", "target.of", "target.of.flag"]
    assert stored(["messages.role", "messages.content"]) == ["messages.role", "messages.content"]
    assert stored(["a.b"]) == ["a.b.words", "a.b.pair"]


@pytest.mark.parametrize(
    ("first", "later", "message"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, "sample 1: 'x.b' does not occur in the first samples"),
        ({"a": 1}, None, "sample 1: 'x' is None, but is a dict in all of the first samples"),
        ({"a": 1}, 5, "sample 1: 'x' has type int, but is a dict in the first samples"),
        ({"a": {"b": 1}}, {}, "sample 1: 'x.a' is None, but is a dict"),
        ([{"a": 1}], [{"a": 1}, None], "sample 1: 'x' is None, but is a dict"),
        ([{"a": 1}], {"a": 1}, "sample 1: 'x' has type dict, but is a list in the first samples"),
        (5, {"a": 1}, "sample 1: column .x.: .* is not a valid i64 element"),
        ({"a": 1}, {"a": None}, "sample 1: .*null"),
    ],
)
def test_later_dicts_of_other_members_are_refused(tmp_path, first, later, message):
    with pytest.raises(ts.InputError, match=message):
        importers.from_iterable([{"x": first}, {"x": later}], tmp_path / "out.tsl", infer_samples=1)
    assert files(tmp_path) == []


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([{"x": 1}, {"x": {"a": 1}}], "column 'x': .*: values of different types: dict, int"),
        ([{"x": {"a": 1}}, {"x": {"a": "b"}}], "column 'x.a': .*: values of different types: int, str"),
        ([{"x": [{"a": 1}]}, {"x": "b"}], "column 'x': .*: values of different types: list, str"),
        ([{"x": [{"a": 1}, "b"]}], "column 'x': .*: values of different types: dict, str"),
        ([{"x": {0: 1}}], "column 'x': a dict has the key 0"),
        ([{"x": {"a": 1}, "x.a": 2}], "column 'x.a': a key with dots and a member of a dict have the same name"),
        ([{"x": {"a": None}}], "column 'x.a': .*: there is no value"),
    ],
)
def test_dicts_without_a_common_type(tmp_path, rows, message):
    with pytest.raises(ts.InputError, match=message):
        importers.from_iterable(rows, tmp_path / "out.tsl")
    assert files(tmp_path) == []
