"""Tests that the library `datasets` finds the features of the source in an export."""
import importlib.util
import os
import pathlib
import random
import tempfile
import unittest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("HF_DATASETS_DISABLE_PROGRESS_BARS", "1")

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

from program import tensilo
from shapes_media import image
from shapes_text import messages, prose, squad, translations

ROWS = 40


def columns(datasets):
    """Returns features and their values by name."""
    value, source = datasets.Value, random.Random("datasets")
    message = {"role": value("string"), "content": value("string")}
    answers = {"text": datasets.List(value("string")), "answer_start": datasets.List(value("int32"))}
    rows = range(ROWS)
    return {
        "chat": (datasets.List(message), [messages(source) for _ in rows]),
        "answers": (answers, squad(source, ROWS)["answers"].to_pylist()),
        "matrix": (datasets.Array2D((2, 3), "float32"), [[[i, 1, 2], [3, 4, 5]] for i in rows]),
        "frames": (datasets.Array3D((2, 2, 2), "uint8"), [[[[i, 1], [2, 3]], [[4, 5], [6, 7]]] for i in rows]),
        "image": (datasets.Image(decode=False), [image(source) for _ in rows]),
        "images": (datasets.List(datasets.Image(decode=False)), [[image(source)] * (i % 3) for i in rows]),
        "audio": (datasets.Audio(16_000, decode=False), [image(source) for _ in rows]),
        "label": (datasets.ClassLabel(names=["cat", "dog"]), [i % 2 for i in rows]),
        "labels": (datasets.List(datasets.ClassLabel(names=["a", "b", "c"])), [[i % 3] * (i % 4) for i in rows]),
        "translation": (datasets.Translation(["de", "fr"]), translations(source, ROWS)["translation"].to_pylist()),
        "embedding": (datasets.List(value("float32"), length=8), [[i / 8] * 8 for i in rows]),
        "large": (value("large_string"), [prose(source) for _ in rows]),
        "time": (value("timestamp[us, tz=UTC]"), [None] * ROWS),
        "halves": (datasets.List(value("float16")), [[i / 2] * (i % 5) for i in rows]),
    }


def write_source(datasets, path):
    """Writes a Parquet file with all features, as `datasets` stores them; returns the features."""
    features, values = ({name: pair[i] for name, pair in columns(datasets).items()} for i in range(2))
    features = datasets.Features(features)
    schema = features.arrow_schema
    arrays = [stored(field.type, values[field.name]) for field in schema]
    pq.write_table(pa.Table.from_arrays(arrays, schema=schema), path, row_group_size=15)
    return features


def stored(data_type, values):
    if isinstance(data_type, pa.ExtensionType):
        return pa.ExtensionArray.from_storage(data_type, stored(data_type.storage_type, values))
    return pa.array(values, data_type)


@unittest.skipUnless(importlib.util.find_spec("datasets"), "the Python package `datasets` is not installed")
class Datasets(unittest.TestCase):
    maxDiff = None

    def test_exports_have_the_features_of_the_source(self):
        import datasets

        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            source, file = folder / "source.parquet", folder / "file.tsl"
            features = write_source(datasets, source)
            tensilo("convert", source, "-o", file)
            tensilo("export", file, "-o", folder / "back.parquet")
            tensilo("export", file, "-o", folder / "back.arrow")
            load = lambda path: datasets.Dataset.from_parquet(str(path), cache_dir=str(folder / "cache" / path.stem))
            expected, from_parquet = load(source), load(folder / "back.parquet")
            from_arrow = datasets.Dataset.from_file(str(stream_of(folder / "back.arrow")))
            self.assertEqual(expected.features, features)
            for found in (from_parquet, from_arrow):
                self.assertEqual(found.features, features)
                for name in features:
                    self.assertEqual(found[name][:], expected[name][:], name)
        print(f"{len(features)} features were found again")


def stream_of(path):
    """Copies an Arrow file to a stream, which `datasets` reads."""
    table, stream = ipc.open_file(str(path)).read_all(), path.with_suffix(".stream")
    with pa.OSFile(str(stream), "wb") as file, ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return stream


if __name__ == "__main__":
    unittest.main()
