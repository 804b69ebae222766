"""Tests that the original libraries read exports of their formats equal to the converted data."""
import importlib.util
import pathlib
import tempfile
import unittest

from program import ROOT, tensilo

DATA = ROOT / "crates/tensilo-convert/tests/data"


def installed(*names):
    """Skips a test unless these libraries, listed in requirements-datasets.txt, are installed."""
    missing = [name for name in names if importlib.util.find_spec(name) is None]
    return unittest.skipIf(missing, f"not installed: {', '.join(missing)}")


class Formats(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def exported(self, source, name, *arguments):
        """Converts a file of test data and exports it to a file of this name."""
        middle, out = self.folder / "middle.tsl", self.folder / name
        tensilo("convert", DATA / source, "-o", middle, "-f")
        tensilo("export", middle, "-o", out, "-f", *arguments)
        return out

    def assert_equal_arrays(self, found, expected):
        self.assertEqual((found.dtype, found.shape), (expected.dtype, expected.shape))
        self.assertEqual(found.tobytes(), expected.tobytes())

    @installed("numpy")
    def test_numpy_reads_arrays_and_archives(self):
        import numpy as np

        for name in ("f32", "f16", "u64", "i8", "bool", "nan", "no-samples", "f64-fortran"):
            out = self.exported(f"npy/{name}.npy", "out.npy")
            self.assert_equal_arrays(np.load(out), np.ascontiguousarray(np.load(DATA / f"npy/{name}.npy")))
        found, expected = np.load(self.exported("npz/stored.npz", "out.npz")), np.load(DATA / "npz/stored.npz")
        self.assertEqual(sorted(found), sorted(expected))
        for name in expected:
            little = expected[name].astype(expected[name].dtype.newbyteorder("<"))
            self.assert_equal_arrays(found[name], np.ascontiguousarray(little))

    @installed("numpy", "safetensors", "ml_dtypes")
    def test_safetensors_reads_tensors(self):
        import ml_dtypes  # noqa: F401, which makes bfloat16 known to NumPy
        from safetensors.numpy import load_file

        source = "safetensors/samples.safetensors"
        found, expected = load_file(self.exported(source, "out.safetensors")), load_file(DATA / source)
        self.assertEqual(sorted(found), sorted(expected))
        for name in expected:
            self.assert_equal_arrays(found[name], expected[name])

    @installed("webdataset")
    def test_webdataset_reads_samples(self):
        import webdataset

        def samples(path):
            read = webdataset.WebDataset(str(path), shardshuffle=False)
            own = ("__url__", "__local_path__")
            return [{key: value for key, value in sample.items() if key not in own} for sample in read]

        source = "webdataset/train.tar"
        found, expected = samples(self.exported(source, "out.tar")), samples(DATA / source)
        for sample in expected:  # big-endian arrays become little-endian
            sample.pop("fixed.npy")
        self.assertEqual([{key: value for key, value in s.items() if key != "fixed.npy"} for s in found], expected)

    @installed("datasets")
    def test_datasets_reads_files_and_streams_of_arrow(self):
        import datasets

        source = "safetensors/samples.safetensors"
        columns = ("--columns", "label,half", "--tensors", "lists")
        stream = datasets.Dataset.from_file(str(self.exported(source, "out.arrows", *columns)))
        self.assertEqual(stream["label"][:], [0, 1, 2, 3])
        for name in ("out.arrow", "out.arrows"):
            file = str(self.exported(source, name, *columns))
            read = datasets.load_dataset("arrow", data_files=file, split="train", cache_dir=str(self.folder / name[4:]))
            self.assertEqual((read["label"][:], read["half"][:]), (stream["label"][:], stream["half"][:]))


if __name__ == "__main__":
    unittest.main()
