"""Runs the program `tensilo`, and reads and writes tables with pyarrow."""
import math
import os
import pathlib
import subprocess

import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("TENSILO_PROGRAM") or str(ROOT / "target/release/tensilo")
FORMATS = ("parquet", "arrow")


class Refused(Exception):
    """The program ended with an error."""


def tensilo(*arguments):
    """Runs a command. Raises `Refused` with its standard error if it fails."""
    run = subprocess.run([PROGRAM, "-q", *map(str, arguments)], capture_output=True, text=True, timeout=600)
    if run.returncode:
        raise Refused(f"{arguments[0]}: exit {run.returncode}: {run.stderr.strip()}")
    return run.stdout


def write(table, path):
    """Writes a table in several row groups or batches, in the format that the extension of the path names."""
    rows = max(1, math.ceil(table.num_rows / 3))
    if path.suffix == ".parquet":
        pq.write_table(table, path, row_group_size=rows)
        return
    with pa.OSFile(str(path), "wb") as file, ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.unify_dictionaries(), max_chunksize=rows)


def read(path):
    """Reads a Parquet file, an Arrow IPC file, or an Arrow IPC stream."""
    with open(path, "rb") as file:
        magic = file.read(6)
    if magic[:4] in (b"PAR1", b"PARE"):
        return pq.ParquetFile(path).read()  # `read_table` would add the partitions of the path
    if magic == b"ARROW1":
        return ipc.open_file(str(path)).read_all()
    with open(path, "rb") as file:
        return ipc.open_stream(file).read_all()


def export(source, path):
    """Exports a tensilo file and reads the result."""
    tensilo("export", source, "-o", path, "-f")
    return read(path)


def same_values(found, expected):
    """Returns whether tables of one type have equal arrays. NaNs are equal."""
    if found.equals(expected):
        return True
    has_floats = any(name in str(expected.schema) for name in ("float", "double"))
    return has_floats and same_rows(found, expected)


def same_rows(found, expected):
    """Returns whether two tables have the same rows, whatever the layout of their arrays."""
    if repr(found.to_pylist()) == repr(expected.to_pylist()):
        return True
    try:
        return all(left.cast(right.type).equals(right) for left, right in zip(found.columns, expected.columns))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False


def first_difference(found, expected):
    if found.num_rows != expected.num_rows:
        return f"{found.num_rows} rows instead of {expected.num_rows}"
    for name, left, right in zip(expected.column_names, found.columns, expected.columns):
        if left.equals(right):
            continue
        for row in range(len(left)):
            if repr(left[row]) != repr(right[row]):
                return f"column {name!r}, row {row}: {left[row]!r} instead of {right[row]!r}"[:500]
        return f"column {name!r}: equal rows, but different arrays (for instance dictionaries)"
    return "no visible difference"
