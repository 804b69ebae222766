"""Tests that tables of all shapes come back unchanged from a conversion and an export."""
import concurrent.futures
import os
import pathlib
import tempfile
import unittest

import pyarrow as pa

import shapes_media
import shapes_nested
import shapes_text
import shapes_types
from differences import KNOWN
from known import Differences
from program import FORMATS, Refused, export, read, tensilo, write


def routes(folder, source, expected):
    """Yields the ways to a tensilo file: name, file or refusal, and the expected table."""
    first, second, longer = (folder / name for name in ("first.tsl", "second.tsl", "longer.tsl"))

    def attempt(file, *arguments):
        try:
            tensilo(*arguments)
            return file
        except Refused as refused:
            return refused

    converted = attempt(first, "convert", source, "-o", first)
    yield "convert", converted, expected
    if converted is first:
        tensilo("verify", "--deep", first)
        yield "tsl", attempt(second, "convert", first, "-o", second), expected
        tensilo("convert", source, "-o", longer)
        yield "append", attempt(longer, "append", longer, source), pa.concat_tables([expected, expected])


def problems(differences, case, table):
    """Returns what is wrong with the exports of a table."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for format in FORMATS:
            source = folder / f"source.{format}"
            try:
                write(table, source)
                expected = read(source)
            except (pa.ArrowException, OSError):
                continue  # pyarrow does not write this type, or does not read what it writes
            for route, file, expected in routes(folder, source, expected):
                for target in FORMATS:
                    try:
                        back = file if isinstance(file, Refused) else export(file, folder / f"back.{target}")
                    except Refused as refused:
                        back = refused
                    found.append(differences.problem(case, format, target, route, back, expected))
            for file in folder.glob("*.tsl"):
                file.unlink()
    return [problem for problem in found if problem]


class Shapes(unittest.TestCase):
    def test_tables_come_back_equal(self):
        differences = Differences(KNOWN)
        found, cases = [], set()
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as threads:
            jobs = []
            for shapes in (shapes_text, shapes_media, shapes_nested, shapes_types):
                for case, table in shapes.tables():
                    self.assertNotIn(case, cases)
                    cases.add(case)
                    jobs.append(threads.submit(problems, differences, case, table))
            for job in jobs:
                found += job.result()
        differences.check(self, found)
        print(f"{len(cases)} tables came back equal, but for {len(KNOWN)} known differences")


if __name__ == "__main__":
    unittest.main()
