#!/usr/bin/env python3
"""Writes seed inputs of the fuzz targets to a folder, from the test vectors of the specification.

Targets that open files get the vectors as files. Decoders get the stored values of the vectors in the layout of
`Parts` in decode.rs. Targets that draw schema and samples from an input get random bytes. The seeds of the import
targets were made by other programs.

    python3 fuzz/seed.py fuzz/target/corpus && fuzz/campaign --minimize
"""
import pathlib
import random
import sys
import zlib

here = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(here.parent / 'format-spec'))
import archive

VECTORS = here.parent / 'format-spec/vectors'
DECODE = ['raw', 'constant', 'zstd', 'bitshuffle_zstd', 'exponent_tiers', 'residual_tiers', 'bins', 'planes_zstd']
ZSTD = 2
BLOCKS = 1 << 8  # the bit of an encoding id for parts in blocks
DTYPES = {1: 4, 2: 0, 4: 2, 8: 3}  # element size: index of i8, bf16, f32, f64 in NUMBERS of decode.rs
DTYPE_COUNT = 12
IN_BLOCKS, VERIFIED = 0x40, 0x80  # bits of the first byte, see decode.rs
RAW_BYTES = 1 << 14  # the target skips larger parts, see decode.rs


def le(n, size):
    return n.to_bytes(size, 'little')


def number(data, at, size):
    return int.from_bytes(data[at:at + size], 'little')


def write(target, name, data):
    folder = pathlib.Path(sys.argv[1]) / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)


def regions(file, magic):
    """Yields the offset and the body of each region of this kind."""
    for at in range(0, len(file), 64):
        if file[at:at + 4] == magic:
            yield at, file[at + 64:at + 64 + number(file, at + 44, 4)]


def parts(file):
    """Yields encoding, decoded length, table and stored bytes of the values of each chunk. The table, which only zstd has, follows its length."""
    tables = [body for _, body in regions(file, b'TSLT')]
    for at, body in regions(file, b'TSLC'):
        raw, stored = number(file, at + 48, 4), len(body)
        if file[at + 54] & 1:
            stored, raw = number(body, 32, 4), number(body, 36, 4)
        encoding, values = number(file, at + 52, 2), body[len(body) - stored:]
        table = b''
        if encoding & ~BLOCKS == ZSTD:
            field = 8 if encoding & BLOCKS else 0
            of_chunk = number(values, field, 4)
            body = tables[of_chunk] if of_chunk < len(tables) else b''
            table = le(len(body), 2) + body
            if body:
                values = values[:field] + le(0, 4) + values[field + 4:]  # the file of decode.rs has one table
        yield encoding, raw, table, values


for path, text in {**archive.read(VECTORS / 'invalid.tar'), **archive.read(VECTORS / 'valid.tar')}.items():
    if not path.endswith('.hex'):
        continue
    stem = pathlib.PurePosixPath(path).stem
    data = bytes.fromhex(''.join(line.split('#')[0] for line in text.decode().splitlines()))
    for target in ('open', 'resealed', 'salvage'):
        write(target, stem, data)
    for i, (encoding, raw, table, stored) in enumerate(parts(data)):
        encoding, in_blocks = encoding & ~BLOCKS, encoding & BLOCKS
        for w, dtype in DTYPES.items():
            if encoding < len(DECODE) and raw % w == 0 and 0 < raw <= RAW_BYTES:
                # see decode.rs; both chunks have this part, with as many samples as possible, and the file is verified
                samples = max(s for s in range(1, 257) if raw // w % s == 0)
                form = VERIFIED | (IN_BLOCKS if in_blocks else 0)
                rest = le(samples - 1, 1) + le(raw // w // samples, 2) + le(len(stored), 2) + table + stored + stored
                write('decode_' + DECODE[encoding], '%s-%d-%d' % (stem, i, w), le(form | dtype, 1) + rest)
                # the target repeats the blocks of one in 16 inputs: find one among the numbers that mean the same dtype
                others = (le(bits | same, 1) + rest for bits in (form, form ^ VERIFIED) for same in range(dtype, IN_BLOCKS, DTYPE_COUNT))
                for long in [other for other in others if in_blocks and zlib.crc32(other) % 16 == 0][:1]:
                    write('decode_' + DECODE[encoding], '%s-%d-%d-long' % (stem, i, w), long)

for target in ('gather', 'roundtrip', 'writer_faults'):
    for seed in range(64):
        write(target, 'random-%d' % seed, random.Random(seed).randbytes(8 * (1 + seed)))
