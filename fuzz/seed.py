#!/usr/bin/env python3
"""Writes the vectors of the specification as files, the seeds of the targets `open` and `resealed`."""
import pathlib

here = pathlib.Path(__file__).parent
for path in sorted((here / "../format-spec/vectors").glob("*valid/*.hex")):
    lines = path.read_text().splitlines()
    data = bytes.fromhex("".join(line.split("#")[0] for line in lines))
    for target in ("open", "resealed"):
        folder = here / "corpus" / target
        folder.mkdir(parents=True, exist_ok=True)
        (folder / path.stem).write_bytes(data)
