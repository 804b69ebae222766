"""Tests that files of Apache's parquet-testing and arrow-testing come back as pyarrow reads them."""
import concurrent.futures
import os
import pathlib
import tempfile
import unittest

from foreign_differences import KNOWN
from known import Differences
from program import FORMATS, Refused, export, read, tensilo

FOLDER = os.environ.get("TENSILO_FOREIGN")
# inputs of other tests, and documentation
NO_TABLES = {".bin", ".csv", ".gz", ".json", ".md", ".txt"}


def problems(differences, root, path):
    """Returns what is wrong with the exports of a file, or `None` if pyarrow cannot read the file."""
    try:
        expected = read(path)
    except Exception:  # pyarrow raises errors of many types
        return None
    found = []
    case, source = str(path.relative_to(root)), "parquet" if path.suffix == ".parquet" else "arrow"
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "file.tsl"
        try:
            tensilo("convert", path, "-o", file)
            tensilo("verify", "--deep", file)
        except Refused as refused:
            file = refused
        for target in FORMATS:
            try:
                back = file if isinstance(file, Refused) else export(file, pathlib.Path(folder) / f"back.{target}")
            except Refused as refused:
                back = refused
            found.append(differences.problem(case, source, target, "convert", back, expected))
    return [problem for problem in found if problem]


@unittest.skipUnless(FOLDER, "TENSILO_FOREIGN does not name a folder with parquet-testing and arrow-testing")
class Foreign(unittest.TestCase):
    def test_files_come_back_equal(self):
        root = pathlib.Path(FOLDER)
        differences = Differences(KNOWN)
        paths = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix not in NO_TABLES)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            results = list(threads.map(lambda path: problems(differences, root, path), paths))
        read = [result for result in results if result is not None]
        self.assertGreater(len(read), 0, f"no table in {root}")
        differences.check(self, [problem for result in read for problem in result])
        print(f"{len(read)} of {len(paths)} files are read by pyarrow, and came back equal, but for {len(KNOWN)} known "
              "differences")


if __name__ == "__main__":
    unittest.main()
