"""Data sets of the benchmark: real samples, repeated with small noise, or synthetic ones."""

import functools
import json
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

NUMPY_DTYPES = {"bf16": np.dtype(np.int16), "i32": np.dtype(np.int32), "text": np.dtype(np.uint8)}
CHUNK = 4096
# Relative noise of one percent: about two units in the last place of a bf16.
NOISE = 0.01


@dataclass(frozen=True)
class Column:
    """A column of a data set. NumPy has no bf16, so its arrays hold the bits as int16."""

    name: str
    dtype: str
    shape: tuple = ()

    @property
    def is_ragged(self):
        """Whether the first extent varies."""
        return None in self.shape

    @property
    def numpy_dtype(self):
        return NUMPY_DTYPES[self.dtype]

    def array(self, buffer):
        """Returns the sample in a buffer."""
        if self.dtype == "text":
            return str(buffer, "utf-8")
        return np.frombuffer(buffer, self.numpy_dtype).reshape([-1 if n is None else n for n in self.shape])


DATA_SETS = {
    "embeddings": [Column("embedding", "bf16", (384,))],
    "weights": [Column("row", "bf16", (4096,))],
    "mel": [Column("mel", "bf16", (None, 80))],
    "tokens": [Column("tokens", "i32", (None,))],
    "mel_text": [Column("mel", "bf16", (101, 128)), Column("text", "text")],
    # The first three values of a sample encode its index.
    "ids": [Column("ids", "bf16", (16,))],
}
SAMPLE_BYTES = {"embeddings": 768, "weights": 8192, "mel": 26400, "tokens": 132, "mel_text": 25900, "ids": 32}


def sample_count(data_set, byte_count, batch_size):
    """Returns the number of samples for about this size: a whole number of batches, at least 4."""
    return max(byte_count // SAMPLE_BYTES[data_set] // batch_size, 4) * batch_size


class Source:
    """The samples of a data set in plain files, from which each peer writes its own files."""

    def __init__(self, folder):
        self.folder = Path(folder)
        description = json.loads((self.folder / "layout.json").read_text())
        self.count = description["count"]
        self.origin = description["origin"]
        self.columns = [Column(c["name"], c["dtype"], tuple(c["shape"])) for c in description["columns"]]

    def __len__(self):
        return self.count

    @functools.cached_property
    def values(self):
        """The elements of each column in one array."""
        return {c.name: np.memmap(self.folder / f"{c.name}.bin", c.numpy_dtype, "r") for c in self.columns}

    @functools.cached_property
    def offsets(self):
        """The start of each sample's elements, followed by the end of the last sample."""
        return {c.name: np.load(self.folder / f"{c.name}.offsets.npy") for c in self.columns}

    def bytes_of(self, column, i):
        """Returns the bytes of a sample."""
        offsets = self.offsets[column.name]
        return self.values[column.name][offsets[i] : offsets[i + 1]].tobytes()

    def __getitem__(self, i):
        return {column.name: column.array(self.bytes_of(column, i)) for column in self.columns}

    def batches(self, size=1024):
        """Yields samples column by column: one array if the column has one shape, else a list."""
        for start in range(0, self.count, size):
            end = min(start + size, self.count)
            yield {column.name: self._batch(column, start, end) for column in self.columns}

    def _batch(self, column, start, end):
        if column.is_ragged or column.dtype == "text":
            return [column.array(self.bytes_of(column, i)) for i in range(start, end)]
        offsets = self.offsets[column.name]
        values = np.array(self.values[column.name][offsets[start] : offsets[end]])
        return values.reshape(end - start, *column.shape)

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key not in ("values", "offsets")}


def make(data_set, count, folder, real):
    """Writes the files of a ``Source``; ``real`` is the folder of the real data, or None."""
    folder = Path(folder)
    folder.mkdir(parents=True)
    random = np.random.default_rng(1)
    columns = DATA_SETS[data_set]
    samples, origin = GENERATORS[data_set](random, count, real)
    files = {c.name: open(folder / f"{c.name}.bin", "wb") for c in columns}
    offsets = {c.name: [0] for c in columns}
    for sample in samples:
        for column in columns:
            values = sample[column.name]
            files[column.name].write(values.tobytes())
            offsets[column.name].append(offsets[column.name][-1] + values.size)
    for column in columns:
        files[column.name].close()
        np.save(folder / f"{column.name}.offsets.npy", np.array(offsets[column.name], np.int64))
    layout = {"count": count, "origin": origin, "columns": [asdict(c) for c in columns]}
    (folder / "layout.json").write_text(json.dumps(layout))
    return Source(folder)


def bf16(values):
    """Rounds values to bf16, and returns the bits as int16."""
    import torch

    return torch.from_numpy(np.ascontiguousarray(values, np.float32)).bfloat16().view(torch.int16).numpy()


def _noisy(values, random):
    noise = random.standard_normal(values.shape, np.float32)
    return bf16(values * (1 + NOISE * noise))


def _repeated(name, pool, random, count):
    """Yields samples of a pool in random order, with noise from the second time on."""
    for start in range(0, count, CHUNK):
        size = min(CHUNK, count - start)
        chosen = pool[random.integers(0, len(pool), size)]
        for values in _noisy(chosen, random):
            yield {name: values}


def _parquet(real, file, column):
    import pyarrow.parquet

    return pyarrow.parquet.read_table(Path(real) / file, columns=[column])[column].combine_chunks()


def _has(real, file):
    return real is not None and (Path(real) / file).is_file()


def _embeddings(random, count, real):
    if _has(real, "sentence_embeddings.parquet"):
        pool = _parquet(real, "sentence_embeddings.parquet", "embedding").flatten().to_numpy().reshape(-1, 384)
        return _repeated("embedding", pool, random, count), "real sentence embeddings, repeated with noise"
    pool = random.standard_normal((2500, 384), np.float32)
    pool /= np.linalg.norm(pool, axis=1, keepdims=True)
    return _repeated("embedding", pool, random, count), "synthetic unit vectors"


def _weights(random, count, real):
    if _has(real, "encoder_layers_bf16.safetensors"):
        flat = _matrices(Path(real) / "encoder_layers_bf16.safetensors")
        origin = "real weights of an encoder, repeated with noise"
    else:
        flat = random.standard_normal(1300 * 4096, np.float32) * 0.04
        origin = "synthetic normal weights"
    pool = flat[: flat.size // 4096 * 4096].reshape(-1, 4096)
    return _repeated("row", pool, random, count), origin


def _matrices(path):
    """Returns the elements of all matrices of a bf16 safetensors file."""
    data = path.read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    tensors = [t for name, t in json.loads(data[8:start]).items() if name != "__metadata__" and len(t["shape"]) == 2]
    parts = [data[start + t["data_offsets"][0] : start + t["data_offsets"][1]] for t in tensors]
    return (np.frombuffer(b"".join(parts), np.uint16).astype(np.uint32) << 16).view(np.float32)


def _clips(random, real):
    """Returns log-mel clips [n, 101, 128], their texts, and their origin."""
    if _has(real, "speech_features.parquet"):
        clips = _parquet(real, "speech_features.parquet", "mel").storage.flatten().to_numpy().reshape(-1, 101, 128)
        texts = [text or "" for text in _parquet(real, "speech_features.parquet", "text").to_pylist()]
        return clips, texts, "real log-mel features of speech, repeated with noise"
    steps = random.standard_normal((200, 101, 128), np.float32)
    smooth = np.cumsum(steps, axis=1) * 0.2 + np.cumsum(steps, axis=2) * 0.2 - 5
    return smooth, [f"synthetic text {i} of a clip" for i in range(200)], "synthetic smooth features"


def _mel(random, count, real):
    clips, _, origin = _clips(random, real)
    frames = clips[:, :, :80].reshape(-1, 80)

    def samples():
        for _ in range(count):
            length = int(random.integers(130, 201))
            start = int(random.integers(0, len(frames) - length))
            yield {"mel": _noisy(frames[start : start + length], random)}

    return samples(), f"{origin}; 80 bands, 130 to 200 frames"


def _mel_text(random, count, real):
    clips, texts, origin = _clips(random, real)

    def samples():
        for i in random.integers(0, len(clips), count):
            yield {"mel": _noisy(clips[i], random), "text": np.frombuffer(texts[i].encode(), np.uint8)}

    return samples(), f"{origin}, and their texts"


def _tokens(random, count, real):
    if _has(real, "speech_features.parquet"):
        lists = _parquet(real, "speech_features.parquet", "tokens")
        pool = [np.array(tokens or [], np.int32) for tokens in lists.to_pylist()]
        origin = "real lists of tokens, repeated with a tenth of the tokens replaced"
    else:
        lengths = random.integers(3, 64, 200)
        pool = [np.minimum(random.zipf(1.2, n), 50000).astype(np.int32) for n in lengths]
        origin = "synthetic lists of tokens"
    every = np.concatenate(pool)

    def samples():
        for i in random.integers(0, len(pool), count):
            tokens = pool[i].copy()
            replaced = random.random(tokens.size) < 0.1
            tokens[replaced] = random.choice(every, int(replaced.sum()))
            yield {"tokens": tokens}

    return samples(), origin


def _ids(random, count, real):
    numbers = np.arange(count)
    values = np.zeros((count, 16), np.float32)
    for digit in range(3):
        values[:, digit] = numbers >> (8 * digit) & 255
    return ({"ids": row} for row in bf16(values)), "numbers of samples"


def numbers_of(batch):
    """Returns the indices of the samples in a batch of the data set ``ids``."""
    digits = batch["ids"][:, :3].long()
    return (digits[:, 0] + (digits[:, 1] << 8) + (digits[:, 2] << 16)).tolist()


GENERATORS = {
    "embeddings": _embeddings,
    "weights": _weights,
    "mel": _mel,
    "tokens": _tokens,
    "mel_text": _mel_text,
    "ids": _ids,
}
