"""Writes the files of this folder with the original libraries, and the values that these read.

    python3 -m venv /some/folder && /some/folder/bin/pip install -r requirements.txt
    /some/folder/bin/python make.py

`expected.json` has for each file its columns: the type, and each sample as its shape and its
elements, little-endian, in hexadecimal digits. Texts are strings, and nulls are null.
"""
import json
import os
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
NAMES = {"float16": "f16", "float32": "f32", "float64": "f64", "bfloat16": "bf16", "bool": "bool"}
EXPECTED = {}


def dtype_name(dtype):
    return NAMES.get(dtype.name) or dtype.name.replace("uint", "u").replace("int", "i")


def tensor(array):
    """Returns the expected form of a sample."""
    array = np.asarray(array)
    little = array.astype(array.dtype.newbyteorder("<")) if array.dtype.byteorder == ">" else array
    return {"shape": list(array.shape), "bytes": np.ascontiguousarray(little).tobytes().hex()}


def tensors(array):
    """Returns an array as a column: its first axis counts samples."""
    return {"dtype": dtype_name(array.dtype), "samples": [tensor(sample) for sample in array]}


def expect(path, columns):
    EXPECTED[str(path.relative_to(HERE))] = columns


def file(name):
    path = HERE / name
    path.parent.mkdir(exist_ok=True)
    return path


def numpy_arrays():
    random = np.random.default_rng(1)
    arrays = {
        "f32": random.standard_normal((5, 2, 3), dtype=np.float32),
        "f16": random.standard_normal((3, 2)).astype(np.float16),
        "f64-fortran": np.asfortranarray(random.standard_normal((4, 3, 2))),
        "i16-big-fortran": np.asfortranarray(np.arange(24, dtype=">i2").reshape(4, 3, 2)),
        "i32-big": np.arange(-6, 6, dtype=">i4").reshape(4, 3),
        "u64": np.array([0, 1, 2**64 - 1], dtype=np.uint64),
        "i8": np.array([[-128, 127]], dtype=np.int8),
        "bool": np.array([True, False, True]),
        "nan": np.array([0x7FC12345, 0xFF800000, 0x80000000], dtype=np.uint32).view(np.float32),
        "no-samples": np.zeros((0, 3), dtype=np.float32),
        "no-elements": np.zeros((3, 0, 2), dtype=np.float32),
    }
    for name, array in arrays.items():
        path = file(f"npy/{name}.npy")
        np.save(path, array)
        expect(path, {"array": tensors(np.load(path))})
    path = file("npy/scalar.npy")
    np.save(path, np.float64(0.1))
    expect(path, {"array": tensors(np.load(path)[None])})
    for version in [(2, 0), (3, 0)]:
        path = file(f"npy/version-{version[0]}.npy")
        with open(path, "wb") as out:
            np.lib.format.write_array(out, arrays["f32"], version=version)
        expect(path, {"array": tensors(np.load(path))})
    refused = {"records": np.zeros(2, dtype=[("a", "<f4"), ("b", "<i4")]), "complex": np.zeros(2, dtype=np.complex128)}
    for name, array in refused.items():
        np.save(file(f"refused/{name}.npy"), array)
    np.save(file("refused/objects.npy"), np.array([{}], dtype=object), allow_pickle=True)
    import ml_dtypes

    np.save(file("refused/bfloat16.npy"), np.ones(2, dtype=ml_dtypes.bfloat16))


def numpy_archives():
    columns = {
        "x": np.linspace(0, 1, 24, dtype=np.float32).reshape(4, 3, 2),
        "y": np.arange(4, dtype=np.int64),
        "f": np.asfortranarray(np.arange(12, dtype=np.float64).reshape(4, 3)),
        "big": np.arange(8, dtype=">u2").reshape(4, 2),
    }
    for name, save in [("stored", np.savez), ("compressed", np.savez_compressed)]:
        own = {key: array for key, array in columns.items() if name == "stored" or key != "f"}
        path = file(f"npz/{name}.npz")
        save(path, **own)
        expect(path, {key: tensors(array) for key, array in np.load(path).items()})
    np.savez(file("refused/axes.npz"), a=np.zeros(3), b=np.zeros(4))
    np.savez(file("refused/text.npz"), mel=np.zeros((4, 3), np.float32), names=np.array(list("abcd")))
    path = file("npz/fortran.npz")
    np.savez_compressed(path, f=columns["f"])
    expect(path, {"f": tensors(columns["f"])})


def safetensors_files():
    import ml_dtypes
    from safetensors.numpy import load_file, save_file

    random = np.random.default_rng(2)
    columns = {
        "embedding": random.standard_normal((4, 3), dtype=np.float32).astype(ml_dtypes.bfloat16),
        "half": random.standard_normal((4, 2)).astype(np.float16),
        "label": np.arange(4, dtype=np.int64),
        "mask": np.array([[True, False], [False, True], [True, True], [False, False]]),
        "image": random.integers(0, 256, (4, 2, 2, 3), dtype=np.uint8),
    }
    path = file("safetensors/samples.safetensors")
    save_file(columns, path, metadata={"source": "make.py"})
    expect(path, {name: tensors(array) for name, array in stored_order(path, load_file(path)).items()})
    path = file("one-sample/weights.safetensors")
    save_file({"w": np.ones((2, 3), dtype=np.float32), "b": np.zeros(3, dtype=np.float64)}, path)
    expect(path, {name: tensors(array[None]) for name, array in stored_order(path, load_file(path)).items()})


def stored_order(path, tensors):
    header = path.read_bytes()
    header = json.loads(header[8 : 8 + int.from_bytes(header[:8], "little")])
    names = [name for name in header if name != "__metadata__"]
    return {name: tensors[name] for name in sorted(names, key=lambda name: header[name]["data_offsets"])}


def webdataset_archives():
    import io

    import webdataset as wds

    def npy(array):
        out = io.BytesIO()
        np.save(out, array)
        return out.getvalue()

    random = np.random.default_rng(3)
    samples = [
        {
            "__key__": f"train/{i:04}",
            "jpg": bytes(random.integers(0, 256, 20, dtype=np.uint8)),
            "cls": i - 1,
            "caption.txt": f"sample number {i}: \u00e4\u20ac",
            "json": {"i": i},
            "mel.npy": random.standard_normal((i + 1, 2), dtype=np.float32),
            "fixed.npy": np.arange(3, dtype=">i2") + i,
            "scalar.npy": np.float64(i / 3),
        }
        for i in range(5)
    ]
    del samples[2]["jpg"], samples[3]["scalar.npy"], samples[3]["caption.txt"]
    for ending in ["tar", "tar.gz"]:
        path = file(f"webdataset/train.{ending}")
        encoded = []
        for sample in samples:
            own = {key: npy(value) if key.endswith("npy") else value for key, value in sample.items()}
            encoded.append({key: str(value).encode() if key == "cls" else value for key, value in own.items()})
        with wds.TarWriter(str(path), mtime=0) as out:
            for sample in encoded:
                out.write(sample)
        read = list(wds.WebDataset(str(path), shardshuffle=False))
        expect(path, webdataset_columns(read))


def webdataset_columns(samples):
    names = []
    for sample in samples:
        names += [name for name in sample if name not in names and name not in ("__url__", "__local_path__")]
    return {name: webdataset_column([sample.get(name) for sample in samples], name) for name in names}


def webdataset_column(values, name):
    import io

    if name == "__key__":
        return {"dtype": "utf8", "samples": values}
    ending = name.rsplit(".", 1)[-1]
    if ending in ("txt", "json"):
        return {"dtype": "utf8", "samples": [value if value is None else value.decode() for value in values]}
    if ending == "cls":
        return tensors(np.array([int(value) for value in values], dtype=np.int64))
    if ending != "npy":
        return {"dtype": "bytes", "samples": [value if value is None else value.hex() for value in values]}
    arrays = [value if value is None else np.load(io.BytesIO(value)) for value in values]
    dtype = next(dtype_name(array.dtype) for array in arrays if array is not None)
    return {"dtype": dtype, "samples": [array if array is None else tensor(array) for array in arrays]}


def tfrecords():
    from tfrecord import TFRecordWriter, tfrecord_loader

    path = file("tfrecord/train.tfrecord")
    writer = TFRecordWriter(str(path))
    samples = [
        {
            "image": (bytes(range(i, i + 5)), "byte"),
            "label": (i - 1, "int"),
            "weights": ([i / 3] * 3, "float"),
            "tokens": (list(range(-i, i)), "int"),
            "words": ([b"a" * i, b"b"], "byte"),
        }
        for i in range(5)
    ]
    del samples[2]["image"], samples[4]["tokens"]
    for sample in samples:
        writer.write(sample)
    writer.close()
    read = [dict(sample) for sample in tfrecord_loader(str(path), None, None)]
    expect(path, tfrecord_columns(read, samples))


def tfrecord_columns(read, samples):
    kinds = {name: kind for sample in samples for name, (_, kind) in sample.items()}
    columns = {}
    for name in sorted(kinds):
        values = [sample.get(name) for sample in read]
        if name == "words":
            texts = [[bytes(text).hex() for text in value] for value in values]
            columns[name] = {"dtype": "list<bytes>", "samples": texts}
        elif kinds[name] == "byte":
            columns[name] = {"dtype": "bytes", "samples": [v if v is None else bytes(v).hex() for v in values]}
        else:
            dtype = np.int64 if kinds[name] == "int" else np.float32
            arrays = [None if value is None else np.asarray(value, dtype=dtype) for value in values]
            if name == "label":
                arrays = [array.reshape(()) for array in arrays]
            columns[name] = {
                "dtype": dtype_name(np.dtype(dtype)),
                "samples": [array if array is None else tensor(array) for array in arrays],
            }
    return columns


def json_lines():
    import gzip

    objects = [
        {"id": 1, "text": "a\u20ac", "score": 1, "vector": [0.1, 0.2], "meta": {"ok": True, "tags": ["x", "y"]}},
        {"id": 2**63, "text": None, "score": 0.1, "vector": [1, 2], "meta": {"ok": False, "tags": []}},
        {"id": 3, "text": "", "score": 1e-320, "vector": [-0.0, 1e300], "meta": {"ok": None, "tags": ["z"]}},
    ]
    text = "".join(json.dumps(line) + "\n" for line in objects)
    path = file("json-lines/train.jsonl")
    path.write_text(text)
    packed = file("json-lines/train.jsonl.gz")
    packed.write_bytes(gzip.compress(text.encode(), mtime=0))
    read = [json.loads(line) for line in text.splitlines()]
    columns = {
        "id": tensors(np.array([line["id"] for line in read], dtype=np.uint64)),
        "text": {"dtype": "utf8", "samples": [line["text"] for line in read]},
        "score": tensors(np.array([line["score"] for line in read], dtype=np.float64)),
        "vector": tensors(np.array([line["vector"] for line in read], dtype=np.float64)),
        "meta.ok": {
            "dtype": "bool",
            "samples": [None if line["meta"]["ok"] is None else tensor(np.bool_(line["meta"]["ok"])) for line in read],
        },
        "meta.tags": {"dtype": "list<utf8>", "samples": [line["meta"]["tags"] for line in read]},
    }
    expect(path, columns)
    expect(packed, columns)


def megatron_dataset():
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDataset, IndexedDatasetBuilder

    documents = [[range(5)], [range(100, 103), []], [[65535]], [range(2)]]
    path = file("megatron/text.idx")
    builder = IndexedDatasetBuilder(str(path.with_suffix(".bin")), dtype=np.uint16)
    for document in documents:
        for sequence in document:
            builder.add_item(torch.tensor(sequence, dtype=torch.int64))
        builder.end_document()
    builder.finalize(str(path))
    read = IndexedDataset(str(path.with_suffix("")))
    bounds = list(read.document_indices)
    documents = [np.concatenate([read[i] for i in range(start, end)]) for start, end in zip(bounds, bounds[1:])]
    expect(path, {"tokens": {"dtype": "u16", "samples": [tensor(document) for document in documents]}})


def main():
    os.environ["SOURCE_DATE_EPOCH"] = "0"
    numpy_arrays()
    numpy_archives()
    safetensors_files()
    webdataset_archives()
    tfrecords()
    json_lines()
    megatron_dataset()
    (HERE / "expected.json").write_text(json.dumps(EXPECTED, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()
