#!/usr/bin/env python3
"""Makes the test vectors of the tensilo file format from its documents, without code of any other implementation.

    make_vectors.py           writes vectors/valid.tar, vectors/invalid.tar and vectors/manifest.json
    make_vectors.py --check   exits with 1 unless the files on disk are exactly what this script makes,
                              and EXAMPLES.md shows their bytes

vector_encoder.py assembles files and vector_faults.py has the invalid vectors. The valid and invalid vectors of one topic
share a file: vector_nested.py has nested columns, vector_blocks.py parts in blocks, and vector_bins.py,
vector_mappings.py, vector_options.py and vector_filters.py have bins. vector_text.py has the examples of EXAMPLES.md.
All other valid vectors are in this file.
"""
import json
import pathlib
import struct
import sys
import zlib

import archive
from vector_encoder import *
import vector_bins
import vector_blocks
import vector_filters
import vector_mappings
import vector_nested
import vector_options
from vector_faults import CONTENT, invalid_vectors, with_offset
from vector_text import DOCUMENTS, example_vectors, wrong_examples, wrong_index


FORGED_ID = b'forged chunkC5(\x9D'  # chosen so that the header_crc of the forged header is 0


def valid_vectors():
    yield 'worked', 'the worked file of chapter 11', worked().commit()
    yield 'no-samples', 'columns, but no sample and no chunk', Tsl([col('x', 'f32', [3]), col('t', 'utf8', [None])]).commit()
    yield 'no-columns', 'no column at all', Tsl([]).commit()
    yield 'no-columns-samples', 'no column, and 3 samples: nothing bounds them', Tsl([]).commit(samples=3)

    f = Tsl([col('x', 'f64')])
    f.chunk(0, [el('d', 1.5), el('d', -2)])
    yield 'rank-0', 'rank 0: one element for each sample', f.commit()

    f = Tsl([col('x', 'f32', [0]), col('y', 'i16', [2, 0, 3]), col('z', 'u8', [VARIES - 1] * 3 + [0]),
             col('r', 'u8', [None, 0])])
    for c in range(3):
        f.chunk(c, [b'', b''])
    f.chunk(3, [((3,), b''), ((0,), b'')])
    yield 'zero-size', 'samples of no elements; column z has a product of extents that passes 2^64 before the 0', f.commit()

    f, letters = Tsl([col(name, name, [None] if name in ('bytes', 'utf8') else [2]) for name in DTYPES]), 'HefdbhiqBHIQ'
    numbers = [ONE + b'\x49\xC0'] + [el(t, *((-1.5, 1) if t in 'efd' else (1, 2) if t.isupper() else (-2, 1)))
                                     for t in letters[1:]] + [b'\0\1']
    small = [bytes([0x7F, 0x81])] * 5 + [b'\x3F\x20'] * 2 + [b'\x0F\x08'] * 3
    for c, sample in enumerate(numbers + [b'\x00\xFF\x80', 'h\u00e9'] + small + [el('f', 1.5, -2, -0.0, 3)]):
        f.chunk(c, [sample])
    yield 'every-dtype', 'one column of each dtype', f.commit()

    f = Tsl([col(name, dtype, [n], nullable=True) for name, dtype, n in (('x', 'unknown 27', 3), ('y', 'unknown 37', 1), ('z', 'unknown 255', 2))]
            + [col('ragged', 'unknown 37', [None, None]), col('known', 'u8')])
    for c in range(3):
        f.chunk(c, [None, bytes(range(1, 1 + f.columns[c]['inner'] * f.columns[c]['w']))])
    f.chunk(3, [((1, 2), bytes(range(8))), ((0, 3), b'')], planes_zstd(8, by_turns(2)))
    f.chunk(4, [b'\5', b'\6'])
    yield 'unknown-dtypes', 'dtypes that are not assigned, of 1, 4 and 8 bytes, next to one that is', f.commit()

    f = Tsl([col('x', 'complex64', [2]), col('y', 'complex64'), col('z', 'complex64', [None], nullable=True)])
    f.chunk(0, [el('f', 1, 2, 3, 4), el('f', 5, 6, 7, 8)], residual_tiers('delta', restart=4, stride=2))
    f.chunk(1, [el('f', 0.5, 0.5)] * 2, CONSTANT)
    f.chunk(2, [el('f', *range(10)), None], planes_zstd(1, by_turns(1, 2)))
    yield 'complex64', 'complex64 is coded as two elements of 4 bytes', f.commit()

    f = Tsl([col('x', 'bf16', [None])])
    f.chunk(0, [ONE * 3, b'', ONE])
    f.chunk(0, [b'', ONE * 2])
    yield 'ragged', 'one varying extent, inner is 1', f.commit()

    f = Tsl([col('x', 'i16', [2, None]), col('y', 'u8', [None, 3])])
    f.chunk(0, [el('h', 1, 2, 3, -1, -2, -3), el('h', 7, 8)])
    f.chunk(1, [b'abcdef', b'', b'ghi'])
    f.chunk(0, [b''])
    yield 'ragged-inner', 'one varying extent, inner is 2 and 3', f.commit()

    f = Tsl([col('x', 'u8', [None, 2, None], nullable=True)])
    f.chunk(0, [((2, 3), bytes(range(12))), ((0, 5), b''), None, ((3, 0), b''), ((1, 1), b'\xFE\xFF')])
    f.chunk(0, [((1, 2), b'wxyz')])
    yield 'ragged-two', 'two varying extents and a fixed one between; extents of empty samples are kept; a null', f.commit()

    f = Tsl([col('x', 'u8', [None, 0])])
    f.chunk(0, [((VARIES - 1,), b'')])
    f.chunk(0, [((0,), b''), ((VARIES - 1,), b''), ((0,), b'')])
    yield 'ragged-largest-extent', 'an extent of 2^32 - 2 of samples of no elements, the only one that varies', f.commit()

    f = Tsl([col('x', 'u8', [None] * 4)])
    f.chunk(0, [((VARIES - 1,) * 3 + (0,), b''), ((0,) + (VARIES - 1,) * 3, b''), ((1, 2, 1, 1), b'ab')])
    yield 'ragged-zero-product', 'varying extents whose product passes 2^64 before the 0', f.commit()

    f = Tsl([col('x', 'u16', [2], nullable=True), col('y', 'u16', nullable=True)])
    f.chunk(0, [el('H', 1, 2), el('H', 3, 4)])
    f.chunk(0, [None, el('H', 0, 0), None])
    f.chunk(0, [None] * 6)
    f.chunk(1, [None if i in (0, 7, 8) else el('H', i) for i in range(11)])
    yield 'nullable', 'chunks with nulls, without and with nothing else; a validity of two bytes', f.commit()

    f = Tsl([col('t', 'utf8', [None], nullable=True), col('b', 'bytes', [None], nullable=True)])
    f.chunk(0, [None, '', 'text', None])
    f.chunk(0, ['', ''])
    f.chunk(0, ['\u00fc\u20ac\U0001F600\0\uFFFD', None])
    f.chunk(1, [b'\0', None, b'', b'\xFF\xFE', None, b'', b'\xC3', b'\xA9'])
    yield 'null-empty-text', 'null, empty and other strings are distinguished', f.commit()

    f = Tsl([col('h', 'bf16', [4]), col('e', 'f16', [4]), col('f', 'f32', [4]), col('d', 'f64', [4])])
    for c, (size, inf) in enumerate(((2, 0x7F80), (2, 0x7C00), (4, 0x7F800000), (8, 0x7FF0 << 48))):
        sign = 1 << 8 * size - 1
        f.chunk(c, [b''.join(le(v, size) for v in (sign, inf | 1, inf | sign | 0x55, inf | sign)), bytes(4 * size)])
    yield 'nan-payloads', '-0.0, signalling and negative NaNs with payloads, -inf', f.commit()

    f = Tsl([col('x', 'bf16', [3]), col('y', 'f64'), col('z', 'u8', [None])])
    f.chunk(0, [ONE * 3] * 3, CONSTANT)
    f.chunk(1, [le(0x7FF0000000000001, 8)] * 3, CONSTANT)
    f.chunk(2, [b'aa', b'', b'a'], CONSTANT)
    yield 'constant', 'encoding constant, of 2, 8 and 1 element bytes', f.commit()

    f = Tsl([col('t', 'utf8', [None]), col('x', 'f32', [3])])
    f.chunk(0, [POEM[:96], POEM[96:]], zstd(POEM_FRAME))
    f.chunk(0, ['stored'], zstd())
    f.chunk(1, [el('f', 1, 2, 3)] * 3, zstd())
    yield 'zstd', 'encoding zstd: a compressed block with a content checksum, raw blocks, a numeric column', f.commit()

    f, sizes = Tsl([col('b', 'bytes', [None])]), el('B', 7)
    blocks = b'abcdefg'
    for header in (b'\x20' + sizes, b'\x60', b'\x80\x00' + le(7, 4), b'\xE0' + le(7, 8), b'\xA0' + le(7, 4),
                   b'\x21\x00' + sizes, b'\x80\x68' + le(7, 4)):
        size = 7 if header != b'\x60' else 263
        text = (blocks * 38)[:size]
        f.chunk(0, [text], zstd(MAGIC + header + (le(7, 2) if size > 7 else b'') + le(size - 3 << 3, 3) + text[:-3]
                                + le(2 << 3, 3) + text[-3:-1] + le(1 << 3 | 1 << 1, 3) + text[-1:] + le(1, 3)))
    yield 'zstd-frames', 'content size of 1, 2, 4 and 8 bytes, a dictionary id of 0; no window, small and 8 MiB; raw, RLE and empty blocks', f.commit()

    f = Tsl([col('b', 'bytes', [None])])
    f.chunk(0, [b'abcdefg'], zstd(MAGIC + b'\x30\x07' + le(7 << 3 | 1, 3) + b'abcdefg'))
    yield 'zstd-unused-bit', 'the unused bit of the frame header', f.commit()

    for w, dtype in ((1, 'u8'), (2, 'u16'), (4, 'u32'), (8, 'u64')):
        f = Tsl([col('x', dtype)])
        for tail in range(8):
            f.chunk(0, [le(0x9E3779B97F4A7C15 * (100 * tail + i + 1) % (1 << 8 * w), w) for i in range(8 + tail)], shuffled())
        f.chunk(0, [el('B', 3 + i) + bytes(w - 1) for i in range(3)], shuffled())
        f.chunk(0, [le(i // 3, w) for i in range(67)], shuffled(bytes.fromhex(THIRDS_FRAMES[w])))
        yield 'bitshuffle-%d' % w, 'encoding bitshuffle-zstd, w = %d, tails of 0 to 7 elements, less than 8 elements' % w, f.commit()

    f = Tsl([col('x', 'u8', [None], nullable=True), col('y', 'i32', [2], nullable=True)])
    f.chunk(0, [None] * 9 + [b''] * 7, validity=zstd(), shape=CONSTANT)
    f.chunk(0, [None] * 17, validity=CONSTANT, shape=CONSTANT)
    f.chunk(0, [b'abc', b'd', b'', b'ef', b'g', b'', b'', b'hijk', None], shuffled(), shuffled(), shuffled())
    f.chunk(0, [b'xy', b'z'], shape=zstd())
    f.chunk(1, [None] * 44, CONSTANT, validity=zstd())
    yield 'encoded-parts', 'encoded validity and shape; an encoding no values use has the number 0', f.commit()

    f = Tsl([col('x', 'u8', [4032]), col('y', 'u8')], A=4096)
    f.chunk(0, [bytes(i % 253 for i in range(4032))])
    f.chunk(0, [bytes(4032)], CONSTANT)
    f.chunk(1, [b'\1', b'\2'])
    f.table(1, b'at a multiple of 4096')
    yield 'alignment-4096', 'alignment 4096; the second chunk follows the first without padding', f.commit()

    # FORGED_ID (file_id and previous), the 32 bytes of cast facts and the zeros of the facts after them form an intact chunk header at 4032
    forged = b'TSLC' + bytes(4) + FORGED_ID + le(4032, 8)
    assert zlib.crc32(forged + bytes(28)) == 0
    cast = ('f32', *struct.unpack('<dd', forged[:16]), *struct.unpack('<QQ', forged[16:]))
    f = Tsl([col('x', 'bf16', cast=cast), col('y', 'u8')], [('k', ' ' * 1873)], A=4096, file_id=FORGED_ID[:12]).commit()
    assert f.regions[1].offset == 1984 and f.bytes()[4032:].startswith(forged)
    yield 'chunk-in-footer', 'alignment 4096; where a chunk could be, the body of the footer has the intact header of one', f

    f = Tsl([col('h\u00e9', 'u8', meta=[('unit', '\u00b5m')]), col('he\u0301', 'u8')], meta=[
        ('Z', ''), ('a', 'line\nbreak\0\x7f'), ('\u00e9', '\u65e5\u672c'), ('\uff5e', 'before'), ('\U0001F600', 'after')])
    f.chunk(0, [b'\1'])
    f.chunk(1, [b'\2'])
    yield 'metadata', 'metadata and names that are not ASCII; keys in byte order (not in UTF-16 order)', f.commit()

    f = Tsl([col('n' * 1024, 'u8', [1] * 16), col('\u20ac \x80\u0085 ', 'u8', [None] + [1] * 15, meta=[('k' * 1024, '')])])
    f.chunk(0, [b'\1'])
    f.chunk(1, [b'\2\3'])
    yield 'limits', 'a name and a key of 1,024 bytes, rank 16; a name with spaces and C1 controls', f.commit()

    # f64 sources 1.00390625 (a tie), 1e39 (becomes infinite), 1e-39 (becomes subnormal), 0.5, 3.3
    f = Tsl([col('x', 'bf16', cast=('f64', 0.00390625, 0.010190457737903398, 1, 1))])
    f.chunk(0, [le(v, 2) for v in (0x3F80, 0x7F80, 0x000B, 0x3F00, 0x4053)])
    yield 'cast', 'cast facts: 1.00390625, 1e39, 1e-39, 0.5, 3.3 from f64 to bf16', f.commit()

    # i64 16777217 (no f32), i8 -128, decimals 1.50 and 0.1 (no f64)
    f = Tsl([col('i', 'f32', cast=('i64', 1.0, 1 / 16777217, 0, 0)), col('b', 'f64', cast=('i8', 0.0, 0.0, 0, 0)),
             col('d', 'f64', [2], cast=('decimal', 5.551115123125783e-18, 5.551115123125783e-17, 0, 0))])
    f.chunk(0, [el('f', 16777216.0)])
    f.chunk(1, [el('d', -128.0)])
    f.chunk(2, [el('d', 1.5) + el('d', 0.1)])
    yield 'cast-numbers', 'casts of integers and decimals: 16777217 to f32, -128 to f64, 1.50 and 0.1 to f64', f.commit()

    f = Tsl([col('x', 'u8'), col('y', 'u8')])
    f.table(1, b'first of y')
    f.chunk(0, [b'\1'])
    f.table(0, b'')
    f.table(1, b'second of y')
    f.chunk(1, [b'\2'])
    yield 'tables', 'tables between chunks, one of them empty', f.commit()

    f = Tsl([col('t', 'utf8', [None], nullable=True), col('x', 'i32', [2]), col('b', 'bytes', [None])])
    f.table(0, b'not needed')
    f.table(0, ZSTD_DICTIONARY)
    f.table(2, other_id(ZSTD_DICTIONARY))
    f.chunk(0, [ZSTD_DICTIONARY_TEXT], with_dictionary(1, ZSTD_DICTIONARY_FRAME))
    f.chunk(0, [b'raw', None, b'blocks'], with_dictionary(1), with_dictionary(1), with_dictionary(1))
    f.table(1, ZSTD_DICTIONARY)
    f.chunk(1, [el('i', 1, 2)] * 4, with_dictionary(0))
    f.chunk(2, [ZSTD_DICTIONARY_TEXT, b'', b'', b''], with_dictionary(0, ZSTD_DICTIONARY_FRAME))
    f.commit(finished=False)
    f.chunk(0, [ZSTD_DICTIONARY_TEXT] * 3, zstd())
    f.chunk(1, [el('i', 3, 4)] * 3)
    f.chunk(2, [ZSTD_DICTIONARY_TEXT[:11], ZSTD_DICTIONARY_TEXT[11:], b''], with_dictionary(0, ZSTD_DICTIONARY_FRAME))
    yield 'zstd-dictionary', 'encoding zstd with a table: a compressed block, raw blocks, all parts, a table of an earlier commit, any Dictionary_ID', f.commit()

    f = Tsl([col('t', 'utf8', [None])])
    for k in range(3):
        f.table(0, with_offset(k, CONTENT))
    for k in range(3):
        f.chunk(0, [ZSTD_DICTIONARY_TEXT], with_dictionary(k))
    yield 'zstd-dictionary-offsets', 'Zstandard dictionaries with an offset that is the length of the content', f.commit()

    yield 'long-run', '127 chunks in a run: two pages, samples_per_chunk 2', run_of([2] * 126 + [1])
    yield 'long-run-varying', '127 chunks in a run, of varying size: samples_per_chunk 0', run_of([1, 2] * 63 + [2])
    yield 'last-chunk-larger', 'samples_per_chunk is 0, for the last chunk is larger', run_of([2, 2, 3])

    f = worked().commit(finished=False)
    f.chunk(0, [ONE * 2])
    yield 'two-commits', 'two commits, the first not finished', f.commit()

    f = worked().commit()
    f.chunk(0, [ONE * 2] * 3, CONSTANT)
    f.chunk(0, [ONE * 2])
    yield 'append-after-finish', 'two finished trailers', f.commit()

    f = worked().commit(finished=False)
    yield 'empty-commit', 'a last commit without chunks, that only finishes', f.commit()

    yield 'unknown-compat', 'an unknown compat flag, in file header and footer', worked(flags=(0, 0, 1 << 31)).commit()
    yield 'unknown-ro-compat', 'an unknown ro_compat flag, in file header and footer', worked(flags=(0, 4, 0)).commit()
    yield 'compat-added', 'a compat flag that only the second footer has', worked().commit(False).commit(flags=(0, 0, 2))
    yield 'file-id-ff', 'file_id all FF', worked(file_id=b'\xFF' * 12).commit()


# ---- encodings 4, 5 and 7 -----------------------------------------------------------------------------------------------

def skewed(n, symbols):
    """Returns n bytes below `symbols`, small ones more frequently."""
    return bytes(min(a >> 44, a >> 24 & 0xFFFFF, a & 0xFFFFF) * symbols >> 20 for a in mixed(n))


def by_turns(*packings):
    """Packs streams with these packings in turn (5.10); a stream that is not constant becomes raw instead of constant."""
    def pack(j, stream):
        packing = packings[j % len(packings)]
        if packing == 1:
            return (1, stream[:1]) if len(set(stream)) == 1 else (0, stream)
        if packing == 2 and len(set(stream)) == 1:  # a run-length encoded block
            return 2, frame(stream)[:-len(stream) - 3] + le(len(stream) << 3 | 3, 3) + stream[:1]
        return packing, frame(stream) if packing else stream
    return pack


def tier_vectors():
    f = Tsl([col('x', 'u8', [6]), col('y', 'bf16', [3]), col('z', 'u8', [2, 3]), col('r', 'u16', [5])])
    f.chunk(0, [bytes.fromhex('0707050709AA')], exponent_tiers())
    f.chunk(1, [bytes.fromhex('803F903F80BF')], residual_tiers('delta', restart=3, stride=1))
    f.chunk(2, [bytes.fromhex('101214202326')], residual_tiers('lorenzo', restart=6, stride=3))
    f.chunk(3, [bytes.fromhex('00000100020007000400')], residual_tiers())
    yield 'tiers-of-text', 'the examples of 5.6, 5.7 and 5.9', f.commit()

    yield 'exponent-tiers', ('encoding exponent-tiers, none and rotate: 1, 2, 4, 8 element bytes; three tiers and literals; '
                             'widths 1 to 3 and 4'), of_many(
        ('bf16', floats(2, 150), exponent_tiers('rotate')), ('bf16', floats(2, 150), exponent_tiers(widths=(3, 2, 2))),
        ('f32', floats(4, 64), exponent_tiers('rotate', (2, 1, 1))), ('f32', floats(4, 65), exponent_tiers(widths=(2, 2, 1))),
        ('f64', floats(8, 30), exponent_tiers('rotate', (1, 2, 3))), ('f64', floats(8, 7), exponent_tiers()),
        ('u8', skewed(300, 60), exponent_tiers(widths=(3, 3, 4))), ('u8', skewed(63, 9), exponent_tiers('rotate')),
        ('i16', el('h', *(a % 700 - 350 for a in mixed(20))), exponent_tiers('rotate', (1, 1, 2))))
    yield 'exponent-tiers-few', ('exponent-tiers: one element, equal symbols, no tier 2, no tier 3, only literals, unused ranks that are not 0, '
                                 'a symbol of two ranks'), of_many(
        ('u8', b'\7', exponent_tiers()), ('u8', b'\0' * 64, exponent_tiers()), ('u8', b'\xFF' * 65, exponent_tiers('rotate')),
        ('u8', b'\1\2\1\1\2', exponent_tiers(widths=(2, 1, 1))), ('u8', b'\1\2\1\1\2', exponent_tiers()),
        ('u8', b'\1\2\3', exponent_tiers(ranks=b'\0\0\0')), ('u8', b'\1\2\1\1\2', exponent_tiers(ranks=b'\1\2\x7F')),
        ('bf16', ONE * 3, exponent_tiers('rotate')),
        ('bf16', ONE, exponent_tiers('rotate', (3, 3, 4), bytes(range(1, 30)))), ('bf16', ONE * 9, exponent_tiers(ranks=b'\x3F\x40\x3F')))
    yield 'exponent-tiers-groups', 'exponent-tiers of 64, 65, 128, 129 and 4,100 elements: groups that are whole and cut, in each tier', of_many(
        ('u8', skewed(64, 3), exponent_tiers()), ('u8', skewed(65, 5), exponent_tiers()), ('u8', skewed(128, 5), exponent_tiers()),
        ('u8', skewed(129, 5), exponent_tiers()), ('bf16', floats(2, 300), exponent_tiers('rotate', (2, 1, 2))),
        ('f32', floats(4, 257), exponent_tiers(widths=(1, 2, 1))), ('u8', skewed(4100, 5), exponent_tiers(widths=(1, 1, 2), ranks=bytes(range(4)))),
        ('u16', b''.join(b'\0' + el('B', s) for s in skewed(4100, 5)), exponent_tiers()))

    numbers = [(dtype, n, w) for dtype, n, w in (('bf16', 75, 2), ('f32', 44, 4), ('f64', 26, 8))]
    for transform in ('delta', 'lorenzo'):
        yield 'residual-tiers-' + transform, ('encoding residual-tiers, %s: stride 1, 0 < stride < restart, stride >= '
                                              'restart, restart not a multiple of stride, restart 1, restart over n' % transform), of_many(*(
            (dtype, floats(w, n), residual_tiers(transform, widths, restart=restart, stride=stride))
            for dtype, n, w in numbers for widths, restart, stride in (
                ((1, 2, 2), 10, 1), ((3, 3, 4), 17, 5), ((2, 1, 3), 12, 4), ((1, 1, 1), 1, 1))), *(
            (dtype, b''.join(le((a % 9 - 4 + i // 3) % (1 << 8 * w), w) for i, a in enumerate(mixed(n))),
             residual_tiers(transform, (2, 2, 1), restart=restart, stride=stride))
            for dtype, n, w in (('u8', 70, 1), ('i8', 40, 1), ('i16', 33, 2), ('i32', 65, 4), ('i64', 20, 8))
            for restart, stride in ((1 << 30, 7), (6, 6), (8, 9), (VARIES, VARIES))))
    yield 'residual-tiers', 'residual-tiers, none: small integers, only 0 and 1, only 0, bit length 64, 64 and 65 extra bits, literals', of_many(
        ('u16', el('H', *(a >> 44 + a % 20 & 0xFFFF for a in mixed(100))), residual_tiers(widths=(3, 2, 1))),
        ('u16', bytes(2), residual_tiers()),
        ('u8', b'\0\1\1\0', residual_tiers()), ('u8', bytes(64), residual_tiers()), ('u8', b'\2' * 64, residual_tiers()),
        ('u8', b'\2' * 65, residual_tiers()), ('u8', b'\2\3' * 31 + b'\4', residual_tiers(ranks=b'\2\0\0')),
        ('u8', b'\x80\1\x40\xFF\0\x10\5', residual_tiers(ranks=b'\0\0\0')),
        ('u64', le((1 << 64) - 1, 8) * 3 + le(1 << 63, 8) + le(5, 8), residual_tiers()),
        ('u64', b''.join(le(a >> a % 64, 8) for a in mixed(64)), residual_tiers(widths=(3, 3, 4))),
        ('u64', el('Q', 0, 1 << 63, 0, 1, 1 << 62), residual_tiers('delta', restart=9, stride=1)))
    mels = b''.join(le(a >> 52 + a % 12, 2) for a in mixed(200))
    yield 'residual-tiers-groups', 'residual-tiers of several groups of 64 elements, whole and cut, with and without extra bits; literals', of_many(
        ('u16', mels, residual_tiers()), ('u16', mels, residual_tiers('delta', (2, 2, 3), restart=50, stride=1)),
        ('u16', mels, residual_tiers('lorenzo', (1, 1, 2), restart=100, stride=10)), ('u16', mels[:128], residual_tiers()),
        ('u16', mels[:130], residual_tiers()), ('u8', bytes(129), residual_tiers()), ('u8', b'\0\1\1' * 43, residual_tiers()),
        ('f32', floats(4, 129), residual_tiers('delta', (1, 2, 2), restart=129, stride=1)),
        ('u64', b''.join(le(a >> a % 64, 8) for a in mixed(66)), residual_tiers(widths=(3, 3, 4))),
        ('u8', bytes(i // 400 for i in range(4097)), residual_tiers('delta', restart=5000, stride=1)))

    f = Tsl([col('x', 'bool', nullable=True), col('y', 'utf8', [None], nullable=True), col('z', 'u8', [None, None]),
             col('w', 'i32', [2], nullable=True)])
    f.chunk(0, [None if i % 5 == 0 else el('B', i % 2) for i in range(70)], exponent_tiers(), residual_tiers())
    words = [None if a % 7 == 0 else 'residuals and planes'[:a % 20] for a in mixed(70)]
    f.chunk(1, words, exponent_tiers(widths=(2, 2, 2)), planes_zstd(8, by_turns(2)), residual_tiers('delta', (1, 1, 1), restart=70, stride=1))
    f.chunk(2, [((a % 4, 3), bytes(a % 4 * 3)) for a in mixed(70)], planes_zstd(1, by_turns(1)), shape=residual_tiers(
        'lorenzo', (2, 1, 1), restart=210, stride=70))
    f.chunk(3, [None if i % 3 == 0 else el('i', i, -i) for i in range(70)],
            residual_tiers('lorenzo', (2, 2, 3), restart=2, stride=1), exponent_tiers('rotate'))
    yield 'tiers-of-parts', 'encodings 4, 5 and 7 in validity and shape, of text and bools, with nulls', f.commit()

    yield 'planes-zstd', 'encoding planes-zstd: both splits, all packings, all transforms, tails of 0 to 7, less than 8 elements', of_many(*(
        (dtype, floats(w, n) if dtype[0] == 'f' or dtype == 'bf16' else b''.join(le(a % 50, w) for a in mixed(n)),
         planes_zstd(split, by_turns(*packings), transform, **(dict(zip(('restart', 'stride'), details)))))
        for dtype, w, n, split, packings, transform, details in (
            ('bf16', 2, 24, 1, (1, 2), 'rotate', ()), ('bf16', 2, 25, 8, (0, 2), 'rotate', ()), ('bf16', 2, 7, 1, (2,), 'none', ()),
            ('f32', 4, 26, 1, (0, 1), 'delta', (8, 2)), ('f32', 4, 27, 8, (2,), 'lorenzo', (9, 3)),
            ('f64', 8, 20, 1, (1,), 'lorenzo', (10, 1)), ('f64', 8, 12, 8, (1, 2), 'none', ()),
            ('u8', 1, 29, 1, (2, 1, 0), 'none', ()), ('u8', 1, 30, 8, (2,), 'delta', (1, 1)), ('u8', 1, 1, 1, (0,), 'none', ()),
            ('i64', 8, 31, 1, (1, 2), 'none', ()), ('i64', 8, 5, 8, (1,), 'delta', (3, 7)), ('u16', 2, 8, 1, (0,), 'lorenzo', (8, 4)))))


# ---- output ----------------------------------------------------------------------------------------------------

def pretty(dump):
    """Returns JSON with an indent of 1, but each shape and each sample on one line."""
    compact, lists = dict(separators=(',', ':')), {}
    for i, c in enumerate(dump['columns']):
        lists['@shape%d@' % i] = json.dumps(c['shape'])
        c['shape'] = '@shape%d@' % i
        if c.get('samples') is not None:
            rows = ',\n'.join('    ' + json.dumps(s, **compact) for s in c['samples'])
            lists['@samples%d@' % i], c['samples'] = '[\n%s\n   ]' % rows if rows else '[]', '@samples%d@' % i
    text = json.dumps(dump, indent=1)
    for key, value in lists.items():
        text = text.replace('"%s"' % key, value)
    return text + '\n'


def level(f):
    """Returns the conformance level of a file: the lowest at which a program decodes all of its parts."""
    names = {ENCODINGS[code & 255] for r in f.regions if r.kind == 'chunk' for code in (*r.used, r.get('encoding'))
             if code & 255 < len(ENCODINGS)}
    return 'bins' if 'bins' in names else 'tiers' if names - {'raw', 'constant', 'zstd', 'bitshuffle-zstd'} else 'core'


def everything():
    """Returns the text of every file, by its name below vectors/."""
    files, manifest = {}, []
    for name, what, f in [*valid_vectors(), *tier_vectors(), *vector_nested.valid_vectors(), *vector_blocks.valid_vectors(),
                          *vector_bins.valid_vectors(), *vector_mappings.valid_vectors(), *vector_options.valid_vectors(),
                          *vector_filters.valid_vectors(), *example_vectors()]:
        files['valid/%s.hex' % name], files['valid/%s.json' % name] = f.hex(what), pretty(f.dump())
        manifest.append({'file': 'valid/%s.hex' % name, 'valid': True, 'level': level(f), 'what': what})
    for rule, name, what, f, *more in (*invalid_vectors(), *vector_nested.invalid_vectors(), *vector_blocks.invalid_vectors(),
                                    *vector_bins.invalid_vectors(), *vector_mappings.invalid_vectors(),
                                    *vector_options.invalid_vectors(), *vector_filters.invalid_vectors()):
        more, file = dict(*more), 'invalid/%s-%s.hex' % (rule, name)
        assert file not in files, file
        also = more.get('also', [])
        notes = ['this also breaks ' + ', '.join(also)] if also else []
        files[file] = f.hex('breaks %s: %s' % (rule, what), notes, brief=True, cut=more.get('cut'))
        entry = {'file': file, 'valid': False, 'level': level(f), 'rule': rule, 'what': what}
        if 'reads' in more:
            files[file.replace('.hex', '.json')] = pretty(f.dump(more['reads']))
        manifest.append({**entry, **{key: more[key] for key in ('also', 'reads') if more.get(key)}})
    rows = ',\n'.join('  ' + json.dumps(m) for m in manifest)
    files['manifest.json'] = '{"vectors": [\n%s\n]}\n' % rows
    return files


def main():
    if sys.argv[1:] not in ([], ['--check']):
        sys.exit(__doc__)
    root = pathlib.Path(__file__).resolve().parent / 'vectors'
    texts = everything()
    files = {name: text.encode() for name, text in texts.items()}
    archives = {root / (kind + '.tar'): {name: data for name, data in files.items() if name.startswith(kind + '/')}
                for kind in ('valid', 'invalid')}
    manifest = root / 'manifest.json'
    if sys.argv[1:]:
        documents = {name: (root.parent / name).read_text('utf-8') for name in DOCUMENTS}
        problems = wrong_examples(documents['EXAMPLES.md'], texts) + wrong_index(documents)
        for path, packed in archives.items():
            wrong = archive.first_difference(path, packed)
            problems += ['%s: not as made: %s' % (path.name, wrong)] if wrong else []
        if not manifest.is_file() or manifest.read_bytes() != files[manifest.name]:
            problems.append('%s: not as made' % manifest.name)
        for problem in problems:
            print(problem)
        sys.exit(1 if problems else 0)
    for path, packed in archives.items():
        archive.write(path, packed)
    manifest.write_bytes(files[manifest.name])
    print('%d files, %d bytes' % (len(files), sum(map(len, files.values()))))


if __name__ == '__main__':
    main()
