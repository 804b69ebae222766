#!/usr/bin/env python3
"""Makes a folder for `tensilo-compare --more DIR`: raw little-endian files, and `sets.json`.

    pip install numpy scipy scikit-learn Pillow pyarrow onnx
    pip install --no-deps silero-vad magika
    apt-get install espeak-ng
    python3 make.py DIR [--data DIR] [--parquet DIR] [--safetensors FILE]

Only numpy is required. A step whose requirements are missing is skipped with a message. The same
versions of the packages give the same values.
"""

import argparse
import importlib.util
import json
import math
import os
import shutil
import subprocess
import sys
import tempfile
import wave
from pathlib import Path

import numpy as np

SCHEMA = "tensilo.compare.data/1"
RATE = 16000
BANDS = 80
PATCH = 64
# The minimum number of elements of a tensor that is taken from a file of weights.
LARGE = 1 << 13
SENTENCES = """The birch canoe slid on the smooth planks.
Glue the sheet to the dark blue background.
It is easy to tell the depth of a well.
These days a chicken leg is a rare dish.
Rice is often served in round bowls.
The juice of lemons makes fine punch.
The box was thrown beside the parked truck.
The hogs were fed chopped corn and garbage.
Four hours of steady work faced us.
A large size in stockings is hard to sell.
The boy was there when the sun rose.
A rod is used to catch pink salmon.
The source of the huge river is the clear spring.
Kick the ball straight and follow through.
Help the woman get back to her feet.
A pot of tea helps to pass the evening.""".splitlines()
VOICES = ["en-us", "en-gb", "de", "fr", "es", "it", "en-us+f3", "en-gb+f2"]


class Unavailable(Exception):
    """A requirement of a step is missing on this machine."""


class Folder:
    """The output: data sets, and the list of them."""

    def __init__(self, path):
        self.path = path
        self.sets = []
        path.mkdir(parents=True, exist_ok=True)

    def add(self, name, dtype, values, shape, origin):
        """Writes samples of `shape`. Drops an incomplete last sample."""
        elements = math.prod(shape)
        values = values.reshape(-1)
        values = values[: len(values) // elements * elements]
        name = f"{name}.{dtype}"
        data = bf16(values) if dtype == "bf16" else values.astype(NUMPY[dtype])
        (self.path / name).write_bytes(data.tobytes())
        self.sets.append({"name": name, "dtype": dtype, "shape": list(shape), "origin": origin})
        print(f"{name}: {len(values) // elements} samples of {list(shape)}, {data.nbytes} bytes")

    def add_floats(self, name, values, shape, origin):
        """Writes 32-bit floats, and the same floats cast to BF16."""
        self.add(name, "bf16", values, shape, f"{origin}, cast to BF16")
        self.add(name, "f32", values, shape, origin)

    def write_list(self):
        text = json.dumps({"schema": SCHEMA, "sets": self.sets}, indent=1)
        (self.path / "sets.json").write_text(text + "\n")


NUMPY = {"f32": "<f4", "f64": "<f8", "i16": "<i2", "i32": "<i4", "i64": "<i8"}


def bf16(values):
    """Rounds finite 32-bit floats to the nearest BF16, ties to even."""
    bits = np.ascontiguousarray(values, dtype="<f4").view("<u4")
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype("<u2")


def photographs():
    """Returns the sample images of scikit-learn: bytes, [height, width, channel]."""
    try:
        from sklearn.datasets import load_sample_images

        return load_sample_images().images
    except ImportError as error:
        raise Unavailable(f"{error}; pip install scikit-learn Pillow") from error


def normalized(image):
    """Normalizes an image as for ImageNet, in 32-bit floats."""
    mean = np.array([0.485, 0.456, 0.406], dtype=np.float32)
    deviation = np.array([0.229, 0.224, 0.225], dtype=np.float32)
    return (image.astype(np.float32) / np.float32(255) - mean) / deviation


def images(folder, _arguments):
    patches = []
    for image in photographs():
        whole = normalized(image)
        for y in range(0, whole.shape[0] - PATCH + 1, PATCH):
            for x in range(0, whole.shape[1] - PATCH + 1, PATCH):
                patches.append(whole[y : y + PATCH, x : x + PATCH])
    origin = "photographs china.jpg and flower.jpg of scikit-learn, normalized as for ImageNet, in patches"
    folder.add_floats("images", np.stack(patches), (PATCH, PATCH, 3), origin)


def spoken(sentence, voice, speed, pitch, file):
    """Returns a sentence spoken by espeak-ng, as 16-bit PCM at 16 kHz."""
    from scipy.signal import resample_poly

    options = ["-v", voice, "-s", str(speed), "-p", str(pitch), "-w", file]
    subprocess.run(["espeak-ng", *options, sentence], check=True)
    with wave.open(file) as recording:
        rate = recording.getframerate()
        pcm = np.frombuffer(recording.readframes(recording.getnframes()), dtype="<i2")
    divisor = math.gcd(rate, RATE)
    resampled = resample_poly(pcm.astype(np.float64), RATE // divisor, rate // divisor)
    return np.clip(np.rint(resampled), -32768, 32767).astype(np.int16)


def log_mel(signal):
    """Returns the log-mel spectrum: windows of 25 ms, hops of 10 ms, natural logarithm."""
    window, hop, size = 400, 160, 512
    padded = np.pad(signal, (window // 2, window // 2), mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(padded, window)[::hop]
    power = np.abs(np.fft.rfft(frames * np.hanning(window), size)) ** 2
    mel = np.linspace(0, 2595 * np.log10(1 + RATE / 2 / 700), BANDS + 2)
    edges = 700 * (10 ** (mel / 2595) - 1)
    frequencies = np.fft.rfftfreq(size, 1 / RATE)
    rising = (frequencies - edges[:-2, None]) / (edges[1:-1] - edges[:-2])[:, None]
    falling = (edges[2:, None] - frequencies) / (edges[2:] - edges[1:-1])[:, None]
    filters = np.maximum(0, np.minimum(rising, falling))
    return np.log(np.maximum(power @ filters.T, 1e-10)).astype(np.float32)


def speech(folder, _arguments):
    if shutil.which("espeak-ng") is None:
        raise Unavailable("espeak-ng is not installed; apt-get install espeak-ng")
    try:
        import scipy.signal  # noqa: F401
    except ImportError as error:
        raise Unavailable(f"{error}; pip install scipy") from error
    clips, mels = [], []
    with tempfile.TemporaryDirectory() as scratch:
        for number, voice in enumerate(VOICES):
            for turn, sentence in enumerate(SENTENCES):
                speed, pitch = 130 + 7 * (turn % 8), 35 + 4 * ((turn + number) % 9)
                pcm = spoken(sentence, voice, speed, pitch, os.path.join(scratch, "spoken.wav"))
                seconds = len(pcm) // RATE
                clip = pcm[: seconds * RATE].astype(np.float32) / np.float32(32768)
                clips.append(clip)
                mels.append(log_mel(clip)[: seconds * RATE // 160])
    origin = f"{len(clips)} sentences spoken by espeak-ng, 16 kHz"
    folder.add_floats("speech", np.concatenate(clips), (RATE,), f"{origin}, 16-bit PCM / 32768")
    folder.add_floats("speech_mel", np.concatenate(mels), (RATE // 160, BANDS), f"log-mel of {origin}")


def trained(folder, _arguments):
    """Trains a perceptron to remove noise from patches of photographs, and writes its weights."""
    whole = [normalized(image) for image in photographs()]
    from sklearn.neural_network import MLPRegressor

    random = np.random.default_rng(5)
    side, patches = 12, []
    for _ in range(6000):
        image = whole[random.integers(len(whole))]
        y, x = (random.integers(extent - side) for extent in image.shape[:2])
        patches.append(image[y : y + side, x : x + side].reshape(-1))
    clean = np.stack(patches)
    noisy = clean + random.normal(0, 0.3, clean.shape).astype(np.float32)
    epochs = 12
    model = MLPRegressor(hidden_layer_sizes=(1024, 1024), batch_size=100, max_iter=epochs, random_state=1, tol=0.0)
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it does not converge in 12 epochs
        model.fit(noisy, clean)
    weights = np.concatenate([layer.reshape(-1) for layer in model.coefs_])
    if weights.dtype != np.float32:
        raise Unavailable(f"scikit-learn trained in {weights.dtype}")
    origin = f"weights of a perceptron trained for {epochs} epochs to remove noise from photographs"
    folder.add_floats("perceptron", weights, (1024,), origin)


def generated(folder, _arguments):
    random = np.random.default_rng(6)
    steps = np.rint(random.standard_t(3, 1 << 20) * 3).astype(np.int64)
    cents = np.maximum(1, 1_000_000 + np.cumsum(steps))
    folder.add("cents", "f64", cents / 100.0, (256,), "generated: a random walk of prices in cents / 100")
    gaps = np.where(random.random(1 << 20) < 0.05, random.integers(0, 60_000, 1 << 20), random.integers(8, 13, 1 << 20))
    times = 1_700_000_000_000 + np.cumsum(gaps)
    folder.add("timestamps", "i64", times, (256,), "generated: milliseconds, 10 apart but for jitter and gaps")
    tokens = np.minimum(random.zipf(1.2, 1 << 21), 50_257) - 1
    tokens = random.permutation(50_257)[tokens]
    folder.add("tokens", "i32", tokens, (512,), "generated: token ids of a vocabulary of 50257, Zipf-distributed")


def imported_pyarrow():
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise Unavailable(f"{error}; pip install pyarrow") from error
    return pyarrow


def shared(folder, arguments):
    """Writes the 32-bit float columns of the files that the comparison reads with `--data`."""
    if arguments.data is None:
        raise Unavailable("no --data")
    pyarrow = imported_pyarrow()
    columns = [
        ("embeddings", "sentence_embeddings.parquet", "embedding", (384,)),
        ("mel", "speech_features.parquet", "mel", (101, 128)),
        ("posterior", "speech_features.parquet", "pitch_posterior", (101, 360)),
        ("f0", "speech_features.parquet", "f0_hz", (101,)),
    ]
    for name, file, column, shape in columns:
        lists = pyarrow.parquet.read_table(arguments.data / file, columns=[column])[column].combine_chunks()
        lists = getattr(lists, "storage", lists)
        values = lists.flatten().to_numpy()
        folder.add(name, "f32", values, shape, f"column {column} of {file}")


def parquet_files(folder, arguments):
    """Writes the column `x`, tensors of a fixed shape, of each Parquet file in a folder."""
    if arguments.parquet is None:
        raise Unavailable("no --parquet")
    pyarrow = imported_pyarrow()
    for path in sorted(arguments.parquet.glob("*.parquet")):
        tensors = pyarrow.parquet.read_table(path, columns=["x"])["x"].combine_chunks()
        if not isinstance(tensors.type, pyarrow.FixedShapeTensorType):
            raise Unavailable(f"column x of {path.name} is not a tensor of a fixed shape")
        values = tensors.storage.flatten().to_numpy()
        name, origin = f"{arguments.parquet.name}-{path.stem}", f"column x of {path.name}"
        if values.dtype.kind == "f":
            folder.add_floats(name, values.astype("<f4"), tensors.type.shape, origin)
        else:
            folder.add(name, f"i{8 * values.itemsize}", values, tensors.type.shape, origin)


def add_large_tensors(folder, name, path, origin):
    """Adds the large tensors of a safetensors file, in rows of 1,024 elements."""
    file = path.read_bytes()
    end = 8 + int.from_bytes(file[:8], "little")
    header = json.loads(file[8:end])
    dtypes = {"F32": "f32", "BF16": "bf16"}
    found = {"f32": [], "bf16": []}
    for tensor in header.values():
        if tensor.get("dtype") in dtypes and math.prod(tensor["shape"]) >= LARGE:
            start, stop = tensor["data_offsets"]
            found[dtypes[tensor["dtype"]]].append(file[end + start : end + stop])
    if found["f32"]:
        folder.add_floats(name, np.frombuffer(b"".join(found["f32"]), "<f4"), (1024,), origin)
    elif found["bf16"]:
        bits = np.frombuffer(b"".join(found["bf16"]), "<u2").astype("<u4") << 16
        folder.add(name, "bf16", bits.view("<f4"), (1024,), origin)
    else:
        raise Unavailable(f"{path.name} has no large tensors of F32 or BF16")


def tensors(folder, arguments):
    """Writes the large tensors of the user's safetensors file."""
    if arguments.safetensors is None:
        raise Unavailable("no --safetensors")
    origin = f"the large tensors of {arguments.safetensors.name}"
    add_large_tensors(folder, "tensors", arguments.safetensors, origin)


def package_file(package, *path):
    """Returns a file of an installed package, without importing the package."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise Unavailable(f"no {package}; pip install --no-deps {package.replace('_', '-')}")
    found = sorted(Path(spec.origin).parent.glob("/".join(path)))
    if not found:
        raise Unavailable(f"{package} has no {'/'.join(path)}")
    return found[-1]


def silero_vad(folder, _):
    """Writes the weights of a speech detector: convolutions and a recurrent layer."""
    path = package_file("silero_vad", "data", "silero_vad_16k.safetensors")
    add_large_tensors(folder, "silero_vad", path, f"the large tensors of {path.name} of the package silero-vad")


def magika(folder, _):
    """Writes the weights of a file type classifier."""
    path = package_file("magika", "models", "*", "model.onnx")
    try:
        import onnx
        from onnx import numpy_helper
    except ImportError as error:
        raise Unavailable(f"{error}; pip install onnx") from error
    weights = [numpy_helper.to_array(tensor).ravel() for tensor in onnx.load(path).graph.initializer]
    large = [tensor for tensor in weights if tensor.dtype == np.float32 and tensor.size >= LARGE]
    origin = f"the large tensors of {path.parent.name}/{path.name} of the package magika"
    folder.add_floats("magika", np.concatenate(large), (1024,), origin)


STEPS = [shared, images, speech, trained, silero_vad, magika, generated, parquet_files, tensors]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", type=Path, help="folder to write to")
    parser.add_argument("--data", type=Path, help="folder that the comparison also gets with --data")
    parser.add_argument("--parquet", type=Path, help="folder of Parquet files with a column x")
    parser.add_argument("--safetensors", type=Path, help="file with F32 or BF16 weights")
    arguments = parser.parse_args()
    folder = Folder(arguments.folder)
    for step in STEPS:
        try:
            step(folder, arguments)
        except Unavailable as reason:
            print(f"{step.__name__}: skipped: {reason}", file=sys.stderr)
    folder.write_list()


if __name__ == "__main__":
    main()
